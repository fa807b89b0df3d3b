/** Starts one container: pulls the image, builds the config, creates and starts it. */
import type { Pod, VolumeMount } from '#apis/core/v1.ts'
import type { Device, Mount, PodSandboxConfig } from '#apis/wire/cri.ts'
import { messageText } from '#cri/call-text.ts'
import { PROPAGATION } from '#cri/codes.ts'
import type { Input } from '#lib/protobuf/message.ts'

import type { Credential } from '../../credentials/credential.ts'
import { type ContainerRecord, fieldPathOf, isRunning } from '../../pod/container-runs.ts'
import { CREATED, type EventSpec, STARTED } from '../../pod/events.ts'
import { podLogDirectory } from '../../pod/sandbox-config.ts'
import type { MountedVolume } from '../../volumes/volume-manager.ts'
import { containerConfig } from '../container-config.ts'
import { environmentOf, expand } from '../environment.ts'
import { hostsFile } from '../hosts-file.ts'
import type { ImageRequest } from '../images/image-puller.ts'
import { credentialsFor } from '../images/pull-secrets.ts'
import type { PodHost } from '../pod-host.ts'
import { StartError } from '../start-error.ts'

/** A pod whose sandbox is ready and whose volumes are mounted. */
export interface StartContext {
  readonly pod: Pod
  readonly records: readonly ContainerRecord[]
  readonly sandboxId: string
  readonly sandboxConfig: Input<PodSandboxConfig>
  readonly podIps: readonly string[]
  readonly volumes: ReadonlyMap<string, MountedVolume>
  /** Aborted when the pod has to end. */
  readonly signal: AbortSignal
  /** Called with the time span of each pull. */
  readonly onPulled: NonNullable<ImageRequest['onPulled']>
}

/** Returns the container ID. Fails with `StartError`, or with any error once the pod has to end. */
export async function startContainer(host: PodHost, context: StartContext, record: ContainerRecord): Promise<string> {
  const { pod, sandboxId, sandboxConfig, signal, onPulled } = context
  const recordEvent = (event: EventSpec): void => host.recordEvent(pod, event, fieldPathOf(record))
  const { spec } = record
  const image = await host.puller.ensure({
    pod,
    container: spec,
    recordEvent,
    signal,
    onPulled,
    credentials: () => credentials(host, pod, spec),
  })
  const contextWithImages = { ...context, images: await volumeImages(host, context, record, recordEvent) }
  const restartCount = record.run === undefined && record.lastRun === undefined ? 0 : record.restartCount + 1
  const reasoned = reasonedUntil(signal)
  const config = await reasoned('CreateContainerConfigError', async () => {
    const runOptions = await host.containerManager.getResources(pod, spec)
    const environment = new Map([...runOptions.envs, ...(await variablesOf(host, context, record))])
    const mounts = [...(await mountsOf(host, contextWithImages, record, environment)), ...runOptions.mounts]
    await host.files.makeDirectory(`${podLogDirectory(pod, host.facts.podLogsDir)}/${spec.name}`)
    const { ref: imageRef, user: imageUser } = image
    return containerConfig({
      pod,
      container: spec,
      restartCount,
      facts: host.facts,
      environment,
      mounts,
      devices: [...runOptions.devices, ...devicesOf(contextWithImages, record)],
      runOptions,
      imageRef,
      imageUser,
      targetId: targetOf(context, record),
      users: sandboxConfig.linux?.securityContext?.namespaceOptions?.usernsOptions,
    })
  })
  const { containerId } = await reasoned('CreateContainerError', () =>
    host.runtime.createContainer({ podSandboxId: sandboxId, config, sandboxConfig }, { signal }),
  ).catch((error: unknown) => {
    host.meters.family('kubelet_image_volume_mounted_errors_total').labels().inc(contextWithImages.images.size)
    throw error
  })
  host.meters.family('kubelet_image_volume_mounted_succeed_total').labels().inc(contextWithImages.images.size)
  recordEvent(CREATED)
  await reasoned('RunContainerError', () => host.runtime.startContainer({ containerId }, { signal }))
  recordEvent(STARTED)
  await linkLog(host, context, { container: spec.name, containerId, logPath: config.logPath ?? '' })
  return containerId
}

interface StartedContainer {
  readonly container: string
  readonly containerId: string
  readonly logPath: string
}

/** Failures are logged: the container runs without the link as well. */
async function linkLog(
  host: PodHost,
  { pod }: StartContext,
  { container, containerId, logPath }: StartedContainer,
): Promise<void> {
  const { name = '', namespace = '' } = pod.metadata
  const path = `${podLogDirectory(pod, host.facts.podLogsDir)}/${logPath}`
  await host.logs.link({ pod: name, namespace, container, containerId, path }).catch((error: unknown) => {
    host.log.error(error, 'Failed to create legacy symbolic link', { path })
  })
}

/** A ready pod with the images of its image volumes, by volume name. */
interface ContextWithImages extends StartContext {
  readonly images: ReadonlyMap<string, string>
}

/** Pulls the image volumes that the container mounts. */
async function volumeImages(
  host: PodHost,
  { pod, volumes, signal, onPulled }: StartContext,
  { spec: { volumeMounts = [], ...spec } }: ContainerRecord,
  recordEvent: (event: EventSpec) => void,
): Promise<Map<string, string>> {
  const images = new Map<string, string>()
  for (const { name } of volumeMounts) {
    const { image } = volumes.get(name) ?? {}
    if (image === undefined || images.has(name)) continue
    const container = { ...spec, image: image.reference, imagePullPolicy: image.pullPolicy }
    host.meters.family('kubelet_image_volume_requested_total').labels().inc()
    const request = {
      pod,
      container,
      recordEvent,
      signal,
      onPulled,
      credentials: () => credentials(host, pod, container),
    }
    images.set(name, (await host.puller.ensure(request)).ref)
  }
  return images
}

/** Turns errors into `StartError`, with the error of the runtime as the text of the event. */
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

function targetOf({ records }: StartContext, { spec }: ContainerRecord): string | undefined {
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
    host.recordEvent(pod, { type: 'Warning', reason: 'FailedToRetrieveImagePullSecret', message })
  }
  const known = found.filter((secret) => secret !== undefined)
  const fromProviders = await Promise.all((host.providers ?? []).map((provider) => provider.credentialsFor(pod, image)))
  return [...credentialsFor(image, known), ...fromProviders.flat()]
}

function variablesOf(
  host: PodHost,
  { pod, podIps, volumes }: StartContext,
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

const PROPAGATIONS: Readonly<Record<string, number>> = {
  HostToContainer: PROPAGATION.hostToContainer,
  Bidirectional: PROPAGATION.bidirectional,
}

/** Volumes in order, then the hosts file, then the termination message file. */
async function mountsOf(
  host: PodHost,
  context: ContextWithImages,
  record: ContainerRecord,
  environment: ReadonlyMap<string, string>,
): Promise<Input<Mount>[]> {
  const { pod, podIps } = context
  const { uid = '' } = pod.metadata
  const { volumeMounts = [], terminationMessagePath = '/dev/termination-log', name } = record.spec
  const mounts: Input<Mount>[] = []
  for (const index of volumeMounts.keys())
    mounts.push(await volumeMountOf(host, context, record, { index, environment }))
  const hasHosts = volumeMounts.some(({ mountPath }) => mountPath === '/etc/hosts')
  if (!hasHosts) {
    const ofNode = pod.spec.hostNetwork === true ? await host.files.read('/etc/hosts') : ''
    const text = hostsFile(pod, podIps, host.facts.clusterDomain, ofNode)
    mounts.push({ containerPath: '/etc/hosts', hostPath: await host.files.writeHosts(uid, text) })
  }
  const hostPath = await host.files.makeMessageFile(uid, name)
  return [...mounts, { containerPath: terminationMessagePath, hostPath }]
}

/** The block volumes of the container. */
function devicesOf(
  { volumes }: StartContext,
  { spec: { name, volumeDevices = [] } }: ContainerRecord,
): Input<Device>[] {
  return volumeDevices.map(({ name: volume, devicePath: containerPath }) => {
    const mounted = volumes.get(volume)
    if (mounted?.isDevice !== true) throw new Error(`cannot find volume "${volume}" to pass into container "${name}"`)
    return { containerPath, hostPath: mounted.hostPath, permissions: mounted.readOnly ? 'r' : 'mrw' }
  })
}

interface MountInput {
  readonly index: number
  readonly environment: ReadonlyMap<string, string>
}

async function volumeMountOf(
  host: PodHost,
  { pod, volumes, images }: ContextWithImages,
  record: ContainerRecord,
  { index, environment }: MountInput,
): Promise<Input<Mount>> {
  const mount = record.spec.volumeMounts?.[index]
  const mounted = volumes.get(mount?.name ?? '')
  if (mount === undefined || mounted === undefined) {
    throw new Error(`cannot find volume "${mount?.name}" to mount into container "${record.spec.name}"`)
  }
  const { name: volume } = mount
  const part = subPathOf(mount, environment)
  const { hostPath } = mounted
  const subPath = { uid: pod.metadata.uid ?? '', container: record.spec.name, volume, index, hostPath, subPath: part }
  const readonly = mounted.readOnly || mount.readOnly === true
  if (mounted.image !== undefined) {
    const image = { image: images.get(volume) ?? '', userSpecifiedImage: mounted.image.reference }
    return { containerPath: mount.mountPath, readonly, image, imageSubPath: part }
  }
  return {
    containerPath: mount.mountPath,
    hostPath: part === '' ? hostPath : await host.volumes.subPath(subPath),
    readonly,
    recursiveReadOnly: readonly && mount.recursiveReadOnly === 'Enabled',
    propagation: PROPAGATIONS[mount.mountPropagation ?? ''] ?? PROPAGATION.private,
  }
}

/** Expands the subPathExpr. Throws when a variable is missing. */
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
