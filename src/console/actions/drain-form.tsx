/** Drains a node: cordons it, then evicts its pods. Shows each pod, and which PodDisruptionBudget refuses one. */
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import type { Pod } from '#apis/core/v1.ts'
import type { KubeList } from '#meta/object.ts'

import { clusterPath } from '../api/kinds.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { Form } from '../forms/form.tsx'
import type { ActionFormProps } from './action-form.ts'
import { type DrainPlan, planDrain } from './drain-plan.ts'
import { type Drain, drainNode } from './drain.ts'

export function DrainForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const [plan, setPlan] = useState<DrainPlan>()
  const [error, setError] = useState('')
  const [drain, setDrain] = useState<Drain>()
  const stop = useRef(new AbortController())
  const { name = '' } = object.metadata
  useEffect(() => {
    const path = `/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${name}`)}`
    sendForJson<KubeList<Pod>>(clusterPath(cluster, path)).then(
      ({ items }) => setPlan(planDrain(items)),
      (failed: unknown) => setError(failed instanceof RequestError ? failed.message : String(failed)),
    )
    return () => stop.current.abort()
  }, [])
  const submit = async (): Promise<void> => {
    if (plan === undefined) return
    const isDrained = await drainNode({
      cluster,
      target: { kind, object },
      plan,
      report: setDrain,
      signal: stop.current.signal,
    })
    if (isDrained) done()
  }
  if (error !== '')
    return (
      <p role="alert" class="words words-bad">
        {error}
      </p>
    )
  if (plan === undefined) return <p class="loading">Loading pods …</p>
  return (
    <Form label="Drain" action="Drain" submit={submit} cancel={close} isDangerous>
      <PlanText plan={plan} />
      {drain !== undefined && <Progress drain={drain} />}
    </Form>
  )
}

function PlanText({ plan }: { readonly plan: DrainPlan }): VNode {
  const { evicted, kept, unmanaged, losing } = plan
  return (
    <>
      <p>{`The node gets no new pods, and ${evicted.length} pods are evicted. ${kept.length} pods stay.`}</p>
      {unmanaged.length > 0 && (
        <p class="words words-bad">{`No controller makes these again: ${namesOf(unmanaged)}`}</p>
      )}
      {losing.length > 0 && <p class="words words-busy">{`Data in emptyDir volumes is lost: ${namesOf(losing)}`}</p>}
    </>
  )
}

const MAX_NAMES = 10

function namesOf(pods: readonly Pod[]): string {
  const names = pods.slice(0, MAX_NAMES).map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name ?? ''}`)
  return names.join(', ') + (pods.length > MAX_NAMES ? ` and ${pods.length - MAX_NAMES} more` : '')
}

function Progress({ drain }: { readonly drain: Drain }): VNode {
  const waiting = drain.pods.filter(({ state }) => state !== 'gone')
  return (
    <div role="status">
      <progress aria-label="Pods that are gone" max={drain.pods.length} value={drain.pods.length - waiting.length} />
      <ul class="results">
        {waiting.slice(0, MAX_NAMES).map(({ name, state, message }) => (
          <li key={name}>
            <bdi>{`${name}: ${state === 'refused' ? message : state}`}</bdi>
          </li>
        ))}
      </ul>
    </div>
  )
}
