/** Recycles a volume with a pod that deletes its content. Events of the pod are copied to the volume. */
import { Events, type PersistentVolume, type Pod, Pods } from '#apis/core/v1.ts'
import type { Draft } from '#client/api-client.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { quantityValue } from '#meta/quantity.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { capacityOf } from '#model/volumes/matching.ts'

import type { ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'

const GIB = 2 ** 30

const IMAGE = 'registry.k8s.io/build-image/debian-base:bookworm-v1.0.6'
const SCRUB = 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1'

/** Throws upstream's errors. */
export async function empty(volume: PersistentVolume, context: ControllerContext): Promise<void> {
  const { client, signal } = context
  const pod = await recyclerFor(volume, context)
  const { namespace = '', name = '' } = pod.metadata
  const remove = (): Promise<void> => client.delete(Pods, { namespace, name }, { signal })
  try {
    await client.create(Pods, pod, { signal })
  } catch (error) {
    if (!isAlreadyExists(error))
      throw new Error(`unexpected error creating recycler pod:  ${messageOf(error)}`, { cause: error })
    const stays = await remove().then(() => undefined, messageOf)
    if (stays !== undefined) {
      throw new Error(`failed to delete old recycler pod ${namespace}/${name}: ${stays}`, { cause: error })
    }
    throw new Error('old recycler pod found, will retry later', { cause: error })
  }
  const outcome = await ended(volume, { namespace, name }, context)
  const leftover = await remove().then(() => undefined, messageOf)
  if (outcome !== undefined) throw new Error(`failed to recycle volume: ${outcome}`)
  if (leftover !== undefined) throw new Error(`failed to delete recycler pod: ${leftover}`)
}

interface PodName {
  readonly namespace: string
  readonly name: string
}

/** Waits for the pod and returns its failure; undefined on success. */
async function ended(
  volume: PersistentVolume,
  where: PodName,
  context: ControllerContext,
): Promise<string | undefined> {
  const over = new AbortController()
  const signal = AbortSignal.any([context.signal, over.signal])
  const relaying = relay(volume, where, { ...context, signal })
  try {
    return await outcomeOf(where, { ...context, signal })
  } finally {
    over.abort()
    await relaying
  }
}

async function outcomeOf(
  { namespace, name }: PodName,
  { client, signal }: ControllerContext,
): Promise<string | undefined> {
  for await (const change of client.watch(Pods, { namespace, fieldSelector: `metadata.name=${name}`, signal })) {
    if (change.type === 'DELETED') return 'recycler pod was deleted'
    if (change.type === 'ERROR') return 'recycler pod watcher failed'
    if (change.type === 'BOOKMARK') continue
    const { phase, message = '' } = change.object.status
    if (phase === 'Succeeded') return undefined
    if (phase === 'Failed') return message === '' ? 'pod failed, pod.Status.Message unknown' : message
  }
  return `recycler pod "${name}" watch channel had been closed`
}

/** Copies events of the pod to the volume until the signal is aborted. */
async function relay(
  volume: PersistentVolume,
  { namespace, name }: PodName,
  context: ControllerContext,
): Promise<void> {
  const { client, event, signal } = context
  try {
    for await (const change of client.watch(Events, {
      namespace,
      fieldSelector: `involvedObject.name=${name}`,
      signal,
    })) {
      if (change.type !== 'ADDED') continue
      const { type, message } = change.object
      event(volume, {
        type: type === 'Warning' ? type : 'Normal',
        reason: 'RecyclerPod',
        message: `Recycler pod: ${message}`,
      })
    }
  } catch (error) {
    // Recycling continues.
    if (!signal.aborted)
      context.log.v(4)?.info('Failed to watch events of recycler pod', { pod: name, err: messageOf(error) })
  }
}

/** The pod template of the flag, or upstream's default. */
async function recyclerFor(volume: PersistentVolume, { settings, readFile }: ControllerContext): Promise<Draft<Pod>> {
  const { hostPath, nfs } = volume.spec
  const isFolder = hostPath !== undefined
  const file =
    settings[isFolder ? 'pv-recycler-pod-template-filepath-hostpath' : 'pv-recycler-pod-template-filepath-nfs']
  const template = file === '' ? TEMPLATE : (parseYaml(await readFile(file)) as unknown as typeof TEMPLATE)
  const [first, ...rest] = template.spec.volumes ?? []
  if (first === undefined) throw new Error(`pod specification (${file}): does not contain any volume(s)`)
  const source = isFolder
    ? { hostPath: { path: hostPath.path } }
    : { nfs: { server: nfs?.server ?? '', path: nfs?.path ?? '' } }
  const [least, perGib] = isFolder
    ? [settings['pv-recycler-minimum-timeout-hostpath'], settings['pv-recycler-timeout-increment-hostpath']]
    : [settings['pv-recycler-minimum-timeout-nfs'], settings['pv-recycler-increment-timeout-nfs']]
  const activeDeadlineSeconds = Math.max(least, Math.floor(quantityValue(capacityOf(volume)) / GIB) * perGib)
  const { generateName: _, ...metadata } = template.metadata
  return {
    ...template,
    metadata: { namespace: 'default', ...metadata, name: `recycler-for-${volume.metadata.name}` },
    spec: { ...template.spec, activeDeadlineSeconds, volumes: [{ name: first.name, ...source }, ...rest] },
  }
}

const TEMPLATE: Pick<Pod, 'metadata' | 'spec'> = {
  metadata: {},
  spec: {
    restartPolicy: 'Never',
    volumes: [{ name: 'vol' }],
    containers: [
      {
        name: 'pv-recycler',
        image: IMAGE,
        command: ['/bin/sh'],
        args: ['-c', SCRUB],
        resources: {},
        volumeMounts: [{ name: 'vol', mountPath: '/scrub' }],
      },
    ],
  },
}
