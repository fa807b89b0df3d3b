/** The start of one container: its image, what it is told, its creation, its start, what it wants done after. */
import type { Pod, VolumeMount } from '#apis/core/v1.ts'
import type { Input } from '#lib/protobuf/message.ts'

import { type ContainerRecord, fieldPathOf, isRunning } from '../container-runs.ts'
import type { Credential } from '../credentials/credential.ts'
import { messageText } from '../cri/call-text.ts'
import { PROPAGATION } from '../cri/codes.ts'
import type { Device, Mount } from '../cri/container-messages.ts'
import type { PodSandboxConfig } from '../cri/sandbox-messages.ts'
import { CREATED, failed, type Note, STARTED } from '../kubelet-notes.ts'
import type { BroughtVolume } from '../volumes/volume-keeper.ts'
import { containerConfig } from './container-config.ts'
import { environmentOf, expand } from './environment.ts'
import { hostsFile } from './hosts-file.ts'
import type { ImageWish } from './image-puller.ts'
import type { PodHost } from './pod-host.ts'
import { credentialsFor } from './pull-secrets.ts'
import { podLogDirectory } from './sandbox-config.ts'
import { StartError } from './start-error.ts'

/** A pod whose sandbox is there and whose volumes have come. */
export interface Place {
  readonly pod: Pod
  readonly records: readonly ContainerRecord[]
  readonly sandboxId: string
  readonly sandboxConfig: Input<PodSandboxConfig>
  readonly podIps: readonly string[]
  readonly volumes: ReadonlyMap<string, BroughtVolume>
  /** The pod is to end. */
  readonly signal: AbortSignal
  /** Told how long images took. */
  readonly pulled: NonNullable<ImageWish['pulled']>
}

/** Returns the id of the runtime. Fails with `StartError`, and with anything once the pod is to end. */
export async function startContainer(host: PodHost, place: Place, record: ContainerRecord): Promise<string> {
  const { pod, sandboxId, sandboxConfig, signal, pulled } = place
  const say = (note: Note): void => host.note(pod, note, fieldPathOf(record))
  const { spec } = record
  const image = await host.puller.ensure({
    pod,
    container: spec,
    say,
    signal,
    pulled,
    credentials: () => credentials(host, pod, spec),
  })
  const furnished = { ...place, images: await volumeImages(host, place, record, say) }
  const restartCount = record.run === undefined && record.lastRun === undefined ? 0 : record.restartCount + 1
  const reasoned = reasonedUntil(signal)
  const config = await reasoned('CreateContainerConfigError', async () => {
    const grant = await host.grants.grantOf(pod, spec)
    const environment = new Map([...grant.envs, ...(await variablesOf(host, place, record))])
    const mounts = [...(await mountsOf(host, furnished, record, environment)), ...grant.mounts]
    await host.files.makeDirectory(`${podLogDirectory(pod, host.facts.podLogsDir)}/${spec.name}`)
    const { ref: imageRef, user: imageUser } = image
    return containerConfig({
      pod,
      container: spec,
      restartCount,
      facts: host.facts,
      environment,
      mounts,
      devices: [...grant.devices, ...devicesOf(furnished, record)],
      grant,
      imageRef,
      imageUser,
      targetId: targetOf(place, record),
      users: sandboxConfig.linux?.securityContext?.namespaceOptions?.usernsOptions,
    })
  })
  const { containerId } = await reasoned('CreateContainerError', () =>
    host.runtime.createContainer({ podSandboxId: sandboxId, config, sandboxConfig }, { signal }),
  ).catch((error: unknown) => {
    host.meters.family('kubelet_image_volume_mounted_errors_total').labels().inc(furnished.images.size)
    throw error
  })
  host.meters.family('kubelet_image_volume_mounted_succeed_total').labels().inc(furnished.images.size)
  say(CREATED)
  await reasoned('RunContainerError', () => host.runtime.startContainer({ containerId }, { signal }))
  say(STARTED)
  await linkLog(host, place, { container: spec.name, containerId, logPath: config.logPath ?? '' })
  return containerId
}

interface Logged {
  readonly container: string
  readonly containerId: string
  readonly logPath: string
}

/** Without it the container runs as well. */
async function linkLog(host: PodHost, { pod }: Place, { container, containerId, logPath }: Logged): Promise<void> {
  const { name = '', namespace = '' } = pod.metadata
  const path = `${podLogDirectory(pod, host.facts.podLogsDir)}/${logPath}`
  await host.logs.link({ pod: name, namespace, container, containerId, path }).catch((error: unknown) => {
    host.log.error(error, 'Failed to create legacy symbolic link', { path })
  })
}

/** A place with the images that its volumes are, by volume. */
interface Furnished extends Place {
  readonly images: ReadonlyMap<string, string>
}

/** Of the volumes that the container mounts. */
async function volumeImages(
  host: PodHost,
  { pod, volumes, signal, pulled }: Place,
  { spec: { volumeMounts = [], ...spec } }: ContainerRecord,
  say: (note: Note) => void,
): Promise<Map<string, string>> {
  const images = new Map<string, string>()
  for (const { name } of volumeMounts) {
    const { image } = volumes.get(name) ?? {}
    if (image === undefined || images.has(name)) continue
    const container = { ...spec, image: image.reference, imagePullPolicy: image.pullPolicy }
    host.meters.family('kubelet_image_volume_requested_total').labels().inc()
    const wish = { pod, container, say, signal, pulled, credentials: () => credentials(host, pod, container) }
    images.set(name, (await host.puller.ensure(wish)).ref)
  }
  return images
}

/** What the event says of faults of the runtime is what it said. */
function reasonedUntil(signal: AbortSignal): <T>(reason: string, work: () => Promise<T>) => Promise<T> {
  return async (reason, work) => {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw error
      throw new StartError(reason, messageText(error), messageText(error))
    }
  }
}

export function sayStartError(host: PodHost, pod: Pod, record: ContainerRecord, { said }: StartError): void {
  if (said !== undefined) host.note(pod, failed(said), fieldPathOf(record))
}

function targetOf({ records }: Place, { spec }: ContainerRecord): string | undefined {
  const name = 'targetContainerName' in spec ? spec.targetContainerName : undefined
  const target = records.find((each) => each.spec.name === name && isRunning(each))
  return target?.run?.id.replace(/^.*:\/\//, '')
}

async function credentials(host: PodHost, pod: Pod, { image = '' }: ContainerRecord['spec']): Promise<Credential[]> {
  const names = (pod.spec.imagePullSecrets ?? []).map(({ name = '' }) => name)
  const found = await Promise.all(names.map((name) => host.objects.secret(pod, name).catch(() => undefined)))
  const missing = names.filter((_, at) => found[at] === undefined)
  if (missing.length > 0) {
    const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`
    host.note(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message })
  }
  const known = found.filter((secret) => secret !== undefined)
  const told = await Promise.all((host.providers ?? []).map((provider) => provider.credentialsFor(pod, image)))
  return [...credentialsFor(image, known), ...told.flat()]
}

function variablesOf(
  host: PodHost,
  { pod, podIps, volumes }: Place,
  record: ContainerRecord,
): Promise<Map<string, string>> {
  return environmentOf({
    pod,
    container: record.spec,
    addresses: { hostIps: host.facts.addresses, podIps: pod.spec.hostNetwork === true ? host.facts.addresses : podIps },
    services: host.services(),
    allocatable: host.node()?.status.allocatable ?? {},
    sources: {
      configMap: (name) => host.objects.configMap(pod, name),
      secret: (name) => host.objects.secret(pod, name),
      file: async (volume, path) => {
        const { hostPath } = volumes.get(volume) ?? {}
        if (hostPath === undefined) throw new Error(`cannot find the volume "${volume}" referenced by FileKeyRef`)
        return host.volumes.read(hostPath, path)
      },
    },
  })
}

interface SubPathQuestion {
  readonly pod: Pod
  readonly record: ContainerRecord
  readonly volume: string
  readonly hostPath: string
  readonly subPath: string
  readonly index?: number
}

function subPathAsk(question: SubPathQuestion): Parameters<PodHost['volumes']['subPath']>[0] {
  const { pod, record, volume, hostPath, subPath, index = 0 } = question
  return { uid: pod.metadata.uid ?? '', container: record.spec.name, volume, index, hostPath, subPath }
}

const PROPAGATIONS: Readonly<Record<string, number>> = {
  HostToContainer: PROPAGATION.hostToContainer,
  Bidirectional: PROPAGATION.bidirectional,
}

/** Of its volumes in their order, then the hosts file, then the file for its last words. */
async function mountsOf(
  host: PodHost,
  place: Furnished,
  record: ContainerRecord,
  environment: ReadonlyMap<string, string>,
): Promise<Input<Mount>[]> {
  const { pod, podIps } = place
  const { uid = '' } = pod.metadata
  const { volumeMounts = [], terminationMessagePath = '/dev/termination-log', name } = record.spec
  const mounts: Input<Mount>[] = []
  for (const index of volumeMounts.keys()) mounts.push(await volumeMountOf(host, place, record, { index, environment }))
  const hasHosts = volumeMounts.some(({ mountPath }) => mountPath === '/etc/hosts')
  if (!hasHosts) {
    const ofNode = pod.spec.hostNetwork === true ? await host.files.read('/etc/hosts') : ''
    const text = hostsFile(pod, podIps, host.facts.clusterDomain, ofNode)
    mounts.push({ containerPath: '/etc/hosts', hostPath: await host.files.writeHosts(uid, text) })
  }
  const hostPath = await host.files.makeMessageFile(uid, name)
  return [...mounts, { containerPath: terminationMessagePath, hostPath }]
}

/** Of volumes that are devices. */
function devicesOf({ volumes }: Place, { spec: { name, volumeDevices = [] } }: ContainerRecord): Input<Device>[] {
  return volumeDevices.map(({ name: volume, devicePath: containerPath }) => {
    const brought = volumes.get(volume)
    if (brought?.isDevice !== true) throw new Error(`cannot find volume "${volume}" to pass into container "${name}"`)
    return { containerPath, hostPath: brought.hostPath, permissions: brought.readOnly ? 'r' : 'mrw' }
  })
}

interface MountQuestion {
  readonly index: number
  readonly environment: ReadonlyMap<string, string>
}

async function volumeMountOf(
  host: PodHost,
  { pod, volumes, images }: Furnished,
  record: ContainerRecord,
  { index, environment }: MountQuestion,
): Promise<Input<Mount>> {
  const mount = record.spec.volumeMounts?.[index]
  const brought = volumes.get(mount?.name ?? '')
  if (mount === undefined || brought === undefined) {
    throw new Error(`cannot find volume "${mount?.name}" to mount into container "${record.spec.name}"`)
  }
  const { name: volume } = mount
  const part = subPathOf(mount, environment)
  const ask = { pod, record, volume, hostPath: brought.hostPath, subPath: part, index }
  const readonly = brought.readOnly || mount.readOnly === true
  if (brought.image !== undefined) {
    const image = { image: images.get(volume) ?? '', userSpecifiedImage: brought.image.reference }
    return { containerPath: mount.mountPath, readonly, image, imageSubPath: part }
  }
  return {
    containerPath: mount.mountPath,
    hostPath: part === '' ? brought.hostPath : await host.volumes.subPath(subPathAsk(ask)),
    readonly,
    recursiveReadOnly: readonly && mount.recursiveReadOnly === 'Enabled',
    propagation: PROPAGATIONS[mount.mountPropagation ?? ''] ?? PROPAGATION.private,
  }
}

/** Whatever it is made from must be there. */
function subPathOf({ subPath = '', subPathExpr = '' }: VolumeMount, environment: ReadonlyMap<string, string>): string {
  if (subPathExpr === '') return subPath
  const missing = new Set<string>()
  const path = expand(subPathExpr, (key) => {
    const value = environment.get(key) ?? ''
    if (value === '') missing.add(key)
    return value
  })
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].sort().join(', ')}`)
  return path
}
