/** Rolls a workload back to an earlier revision. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import type { ControllerRevision, ReplicaSet } from '#apis/apps/v1.ts'
import type { KubeList, KubeObject } from '#meta/object.ts'

import { clusterPath, listPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { Form } from '../forms/form.tsx'
import { podSelectorOf, selectorQuery } from '../objects/selector.ts'
import { AgeText } from '../parts/age-text.tsx'
import type { ActionFormProps } from './action-form.ts'
import type { Target } from './action.ts'
import { controllerRevisions, deploymentRevisions, type Revision } from './plans.ts'
import { runRequest } from './run-action.ts'

export function UndoForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const [found, setFound] = useState<{ readonly revisions?: readonly Revision[]; readonly error?: string }>({})
  useEffect(() => {
    readRevisions(cluster, { kind, object }).then(
      (revisions) => setFound({ revisions }),
      (error: unknown) => setFound({ error: error instanceof RequestError ? error.message : String(error) }),
    )
  }, [])
  const { revisions, error } = found
  const earlier = revisions?.filter(({ isCurrent }) => !isCurrent) ?? []
  const submit = async ({ revision = '' }: Readonly<Record<string, string>>): Promise<void> => {
    const chosen = earlier.find(({ number }) => String(number) === revision)
    if (chosen !== undefined) await runRequest(cluster, chosen.request)
    done()
  }
  if (error !== undefined) return <Nothing text={error} isError close={close} />
  if (revisions === undefined) return <p class="loading">Loading revisions …</p>
  if (earlier.length === 0) return <Nothing text="There is no earlier revision." close={close} />
  return (
    <Form label="Roll back" action="Roll back" submit={submit} cancel={close}>
      <fieldset>
        <legend>To revision</legend>
        {earlier.map(({ number, summary, createdAt }, at) => (
          <label key={number} class="choice">
            <input type="radio" name="revision" value={number} defaultChecked={at === 0} />
            <bdi>{` ${number}: ${summary} `}</bdi>
            <span class="muted">
              <AgeText time={createdAt} /> old
            </span>
          </label>
        ))}
      </fieldset>
    </Form>
  )
}

interface NothingProps {
  readonly text: string
  readonly isError?: boolean
  readonly close: () => void
}

function Nothing({ text, isError = false, close }: NothingProps): VNode {
  return (
    <>
      {isError ? (
        <p role="alert" class="words words-bad">
          {text}
        </p>
      ) : (
        <p>{text}</p>
      )}
      <div class="form-actions">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </>
  )
}

async function readRevisions(cluster: string, target: Target): Promise<readonly Revision[]> {
  const { object } = target
  const isDeployment = object.kind === 'Deployment'
  const plural = isDeployment ? 'replicasets' : 'controllerrevisions'
  const path = listPath({ group: 'apps', version: 'v1', plural }, object.metadata.namespace)
  const labels = selectorQuery(podSelectorOf(object)) ?? ''
  const query = new URLSearchParams({ labelSelector: labels }).toString()
  const { items } = await sendForJson<KubeList<KubeObject>>(clusterPath(cluster, `${path}?${query}`))
  if (isDeployment) return deploymentRevisions(target, items as ReplicaSet[])
  return controllerRevisions(target, items as ControllerRevision[])
}
