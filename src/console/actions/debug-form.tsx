/** Adds a debug container to a pod or a debug pod to a node, then opens its shell. */
import type { VNode } from 'preact'

import type { Pod } from '#apis/core/v1.ts'

import { RequestError } from '../api/request.ts'
import { SelectField } from '../forms/choices.tsx'
import { Field, Form } from '../forms/form.tsx'
import { go } from '../routing/router.tsx'
import type { ActionFormProps } from './action-form.ts'
import { DEFAULT_IMAGE, debugInPod, debugOnNode, type DebugStart, debugTargets } from './debug-plan.ts'
import { runRequest, surroundings } from './run-action.ts'

const PODS = { group: '', version: 'v1', plural: 'pods' }
const PROFILES = [
  { value: 'general', text: 'General: may trace processes of the pod' },
  { value: 'restricted', text: 'Restricted: no root, no capabilities' },
]

type Fields = Readonly<Record<string, string>>

export function DebugPodForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const targets = debugTargets(object as Pod)
  const submit = async ({ image = '', profile, target = '' }: Fields): Promise<void> => {
    const options = {
      image: imageOf(image),
      profile: profile === 'restricted' ? profile : 'general',
      ...surroundings(),
    } as const
    await start(cluster, debugInPod({ kind, object }, options, target), done)
  }
  return (
    <Form label="Debug" action="Add and open a shell" submit={submit} cancel={close}>
      <p>
        The pod gets another container with this image. It runs beside the others until its shell ends. Kubernetes
        cannot remove it from the pod: its entry stays until the pod is deleted.
      </p>
      <Field name="image" label="Image" value={DEFAULT_IMAGE} />
      <SelectField
        name="target"
        label="See the processes of"
        value={targets[0] ?? ''}
        choices={[...targets.map((name) => ({ value: name, text: name })), { value: '', text: 'No other container' }]}
      />
      <SelectField name="profile" label="Rights" choices={PROFILES} value="general" />
    </Form>
  )
}

export function DebugNodeForm({ cluster, kind, object, close, done }: ActionFormProps): VNode {
  const submit = async ({ image = '', namespace = '' }: Fields): Promise<void> => {
    const options = { image: imageOf(image), ...surroundings() }
    await start(cluster, debugOnNode({ kind, object }, options, namespace.trim()), done)
  }
  return (
    <Form label="Debug" action="Create and open a shell" submit={submit} cancel={close} isDangerous>
      <p>
        A pod is created on this node. It has the network and the processes of the node, and all files of the node at
        /host. Its root user can change them. The pod stays until you delete it.
      </p>
      <Field name="image" label="Image" value={DEFAULT_IMAGE} />
      <Field name="namespace" label="Namespace of the pod" value="default" />
    </Form>
  )
}

function imageOf(text: string): string {
  const image = text.trim()
  if (image === '' || /\s/.test(image)) throw new RequestError({ code: 400, message: `"${text}" is not an image` })
  return image
}

async function start(
  cluster: string,
  { request, namespace, pod, container }: DebugStart,
  done: () => void,
): Promise<void> {
  await runRequest(cluster, request)
  done()
  go({ page: 'object', cluster, kind: PODS, namespace, name: pod, tab: 'shell' }, { container, attach: '1' })
}
