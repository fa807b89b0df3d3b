/**
 * Mounts CSI volumes: stages a volume once per node and publishes it to each pod. A record on disk precedes each driver
 * call, so that a restarted kubelet can undo the call.
 */
import { mkdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'
import { callText } from '#cri/call-text.ts'
import type { Clock } from '#lib/clock.ts'
import { GrpcError, type StatusName } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log/log.ts'

import type { FsUse } from '../../machine/node-stats.ts'
import type { EventSpec } from '../../pod/events.ts'
import { KeyedMutex } from '../keyed-mutex.ts'
import { setOwnership } from '../ownership.ts'
import { VolumeFault } from '../volume-fault.ts'
import { podPaths } from '../volume-paths.ts'
import { CsiAttachments } from './csi-attachments.ts'
import { mountBlockDevice, unmountBlockDevice } from './csi-block.ts'
import type { CsiDrivers } from './csi-drivers.ts'
import { growthOf } from './csi-growth.ts'
import { attachmentName, CSI_PLUGIN, type CsiPaths, csiPaths, uniqueName } from './csi-names.ts'
import { CAPABILITY, type NodeService } from './csi-node-service.ts'
import {
  namesIn,
  type PodVolumeRecord,
  readRecord,
  recordsOfPod,
  recordsOfPods,
  removeRecord,
  writeRecord,
} from './csi-records.ts'
import type { CsiRequest, ServingDriver } from './csi-request.ts'
import { capabilityOf, checkLifecycle, type CsiSource, needsAttachment, takesGroup } from './csi-source.ts'
import { type CsiSources, publishParameters, secretsOf } from './csi-sources.ts'
import { driverUse } from './csi-usage.ts'

export interface CsiVolumesOptions {
  readonly rootDir: string
  readonly nodeName: string
  readonly drivers: CsiDrivers
  readonly sources: CsiSources
  readonly clock: Clock
  readonly log: Logger
  readonly recordEvent: (pod: Pod, event: EventSpec) => void
  /** Called when `volumesInUse` has changed. */
  readonly onInUse: () => void
}

export interface CsiMount {
  readonly hostPath: string
  readonly isDevice: boolean
  /** The driver requires periodic republishing. */
  readonly isRepeated: boolean
}

export interface CsiMeasure extends FsUse {
  readonly isAbnormal?: boolean
}

const MOUNT = 'mount'
const GLOBAL_MOUNT = 'globalmount'

export class CsiVolumes {
  readonly #options: CsiVolumesOptions
  readonly #paths: CsiPaths
  readonly #mutex = new KeyedMutex()
  readonly #attachments: CsiAttachments
  /** Unique names. */
  readonly #staged = new Set<string>()
  /** Keys of pod and volume. */
  readonly #published = new Set<string>()

  constructor(options: CsiVolumesOptions) {
    this.#options = options
    this.#paths = csiPaths(options.rootDir)
    this.#attachments = new CsiAttachments(options)
    options.drivers.onRegistered = (driver) =>
      void this.#sweep(driver).catch((error: unknown) =>
        options.log.error(error, 'Failed to clean up staged volumes', { driver }),
      )
  }

  /** For `volumesInUse` in the status of the node. */
  get inUse(): readonly string[] {
    return this.#attachments.inUse
  }

  /** Restores the volumes in use from before a restart. */
  async start(): Promise<void> {
    for (const { uid, record } of await recordsOfPods(this.#options.rootDir, this.#paths)) {
      const isAttachable = record.volumeLifecycleMode !== 'Ephemeral'
      if (isAttachable) this.#attachments.use(uniqueName(record.driverName, record.volumeHandle), uid)
    }
  }

  async mount(request: CsiRequest, signal: AbortSignal): Promise<CsiMount> {
    const { source, pod } = request
    const { sources, clock } = this.#options
    const unique = uniqueName(source.driver, source.handle)
    const object = sources.driver(source.driver)
    const isAttached = needsAttachment(source, object)
    if (isAttached) {
      this.#attachments.use(unique, pod.metadata.uid ?? '')
      await this.#attachments.until(unique, signal)
    }
    const publishContext = isAttached ? await this.#attachments.publishContext(source) : new Map<string, string>()
    return clock.during(
      this.#mutex.run(unique, async () => {
        const serving = await this.#ask(source, object, publishContext)
        const hostPath = source.isBlock
          ? await this.#mountBlockDevice(request, serving)
          : await this.#mountFiles(request, serving)
        return { hostPath, isDevice: source.isBlock, isRepeated: isRepeated(serving) }
      }),
    )
  }

  async #ask(
    source: CsiSource,
    object: CSIDriver | undefined,
    publishContext: ServingDriver['publishContext'],
  ): Promise<ServingDriver> {
    const { driver, lifecycle, isBlock } = source
    const isStaged = lifecycle === 'Persistent'
    try {
      const service = this.#options.drivers.service(driver)
      const { capabilities } = await service.getCapabilities({})
      return { service, object, publishContext, capabilities: new Set(capabilities.map(({ rpc }) => rpc?.type ?? 0)) }
    } catch (error) {
      const text = callText(error)
      if (isBlock) throw blockFault(`blockMapper.SetUpDevice failed to get CSI client: ${text}`)
      if (!isStaged)
        throw new Error(`${CSI_PLUGIN}: mounter.SetUpAt failed to get CSI client: ${text}`, { cause: error })
      const message = `${CSI_PLUGIN}: attacher.MountDevice failed to create newCsiDriverClient: ${text}`
      throw new VolumeFault('MountVolume.MountDevice failed', message)
    }
  }

  async #mountFiles(request: CsiRequest, serving: ServingDriver): Promise<string> {
    const { pod, name, source } = request
    const key = `${pod.metadata.uid}/${name}`
    const dir = this.#podDir(pod.metadata.uid ?? '', name)
    const path = join(dir, MOUNT)
    const isStaging = source.lifecycle === 'Persistent' && serving.capabilities.has(CAPABILITY.stage)
    const staging = isStaging ? join(this.#paths.device(source.driver, source.handle), GLOBAL_MOUNT) : ''
    if (isStaging) await this.#stage(request, serving, staging)
    const wasPublished = this.#published.has(key)
    if (!wasPublished || isRepeated(serving)) await this.#publish(request, serving, { dir, staging, wasPublished })
    this.#published.add(key)
    await this.#grow(request, serving, { volumePath: path, stagingTargetPath: staging })
    return path
  }

  /** Once per node. */
  async #stage({ pod, source }: CsiRequest, serving: ServingDriver, stagingTargetPath: string): Promise<void> {
    const { driver: driverName, handle: volumeHandle } = source
    const unique = uniqueName(driverName, volumeHandle)
    if (this.#staged.has(unique)) return
    const secrets = await secretsOf(this.#options.sources, source.stageSecret, 'NodeStageSecretRef').catch(
      mountDeviceFault,
    )
    const dir = dirname(stagingTargetPath)
    await mkdir(stagingTargetPath, { recursive: true, mode: 0o750 })
    await writeRecord(dir, { driverName, volumeHandle })
    try {
      await serving.service.stage({
        volumeId: volumeHandle,
        publishContext: serving.publishContext,
        stagingTargetPath,
        volumeCapability: capabilityOf(source, serving.capabilities, this.#mountGroup(pod, serving)),
        secrets,
        volumeContext: new Map(Object.entries(source.attributes)),
      })
    } catch (error) {
      if (isFinal(error)) await removeRecord(dir, GLOBAL_MOUNT).catch(() => undefined)
      mountDeviceFault(error)
    }
    this.#staged.add(unique)
  }

  #mountGroup(pod: Pod, { capabilities }: ServingDriver): number | undefined {
    return capabilities.has(CAPABILITY.mountGroup) ? pod.spec.securityContext?.fsGroup : undefined
  }

  async #publish(
    request: CsiRequest,
    serving: ServingDriver,
    { dir, staging, wasPublished }: { dir: string; staging: string; wasPublished: boolean },
  ): Promise<void> {
    const { pod, name, source } = request
    const { nodeName } = this.#options
    checkSupport(source, serving.object)
    const { attributes, secrets } = await publishParameters(this.#options.sources, request, serving.object)
    await writeRecord(dir, {
      specVolID: name,
      volumeHandle: source.handle,
      driverName: source.driver,
      nodeName,
      volumeLifecycleMode: source.lifecycle,
      attachmentID: attachmentName(source.handle, source.driver, nodeName),
    })
    try {
      await serving.service.publish({
        volumeId: source.handle,
        publishContext: serving.publishContext,
        stagingTargetPath: staging,
        targetPath: join(dir, MOUNT),
        volumeCapability: capabilityOf(source, serving.capabilities, this.#mountGroup(pod, serving)),
        readonly: source.readOnly,
        secrets,
        volumeContext: attributes,
      })
    } catch (error) {
      // A running pod may use the published volume.
      if (isFinal(error) && !wasPublished) await removeRecord(dir, MOUNT).catch(() => undefined)
      throw new Error(callText(error), { cause: error })
    }
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {}
    const isDriversWork = serving.capabilities.has(CAPABILITY.mountGroup)
    if (isDriversWork || !takesGroup(source, fsGroup, serving.object)) return
    await setOwnership(join(dir, MOUNT), { fsGroup, readOnly: false, policy }).catch((error: Error) => {
      throw new Error(`applyFSGroup failed for vol ${source.handle}: ${error.message}`, { cause: error })
    })
  }

  async #mountBlockDevice(request: CsiRequest, serving: ServingDriver): Promise<string> {
    const { source, name, pod } = request
    const { rootDir, sources } = this.#options
    const secrets = {
      stage: await secretsOf(sources, source.stageSecret, 'NodeStageSecretRef'),
      publish: await secretsOf(sources, source.publishSecret, 'NodePublishSecretRef'),
    }
    const key = `${pod.metadata.uid}/${name}`
    const isStaged = this.#published.has(key)
    const link = await mountBlockDevice(request, { serving, secrets, rootDir, paths: this.#paths, isThere: isStaged })
    this.#published.add(key)
    const staging = serving.capabilities.has(CAPABILITY.stage) ? this.#paths.blockStaging(name) : ''
    const volumePath = this.#paths.blockPublish(name, pod.metadata.uid ?? '')
    await this.#grow(request, serving, { volumePath, stagingTargetPath: staging })
    return link
  }

  /** Usage reported by the driver; undefined if it reports none. */
  async measure({ pod, name, source }: CsiRequest, hostPath: string): Promise<CsiMeasure | undefined> {
    const service = this.#options.drivers.service(source.driver)
    const { capabilities } = await service.getCapabilities({})
    const known = new Set(capabilities.map(({ rpc }) => rpc?.type ?? 0))
    if (!known.has(CAPABILITY.stats)) return undefined
    const isStaged = source.lifecycle === 'Persistent' && known.has(CAPABILITY.stage)
    const volumePath = source.isBlock ? this.#paths.blockPublish(name, pod.metadata.uid ?? '') : hostPath
    const stagingTargetPath = !isStaged
      ? ''
      : source.isBlock
        ? this.#paths.blockStaging(name)
        : join(this.#paths.device(source.driver, source.handle), GLOBAL_MOUNT)
    const { usage, volumeCondition } = await service.getStats({
      volumeId: source.handle,
      volumePath,
      stagingTargetPath,
    })
    const isAbnormal = known.has(CAPABILITY.condition) ? volumeCondition?.abnormal : undefined
    return { ...driverUse(usage), ...(isAbnormal !== undefined && { isAbnormal }) }
  }

  /** Expands the volume on the node when the PersistentVolume has grown. Failures do not stop the pod. */
  async #grow(
    { pod, name, source }: CsiRequest,
    { service, capabilities }: ServingDriver,
    at: { readonly volumePath: string; readonly stagingTargetPath: string },
  ): Promise<void> {
    const requiredBytes = growthOf(source)
    if (requiredBytes === undefined || !capabilities.has(CAPABILITY.expand)) return
    const { recordEvent, sources } = this.#options
    try {
      const secrets = await secretsOf(sources, source.expandSecret, 'NodeExpandSecretRef')
      const volumeCapability = capabilityOf(source, capabilities)
      await service.expand({
        volumeId: source.handle,
        ...at,
        capacityRange: { requiredBytes },
        volumeCapability,
        secrets,
      })
      await sources.grown(source)
      const message = `MountVolume.NodeExpandVolume succeeded for volume "${name}" `
      recordEvent(pod, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message })
    } catch (error) {
      const why = `Expander.NodeExpand failed to expand the volume : ${callText(error)}`
      const message = `NodeExpandVolume.NodeExpandVolume failed for volume "${name}" : ${why}`
      recordEvent(pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })
    }
  }

  /** Unpublishes all volumes of a pod and unstages unused ones. Rejects while a needed driver is not registered. */
  async unmount(uid: string): Promise<void> {
    const { rootDir } = this.#options
    for (const found of await recordsOfPod(rootDir, uid, this.#paths)) {
      const { driverName, volumeHandle } = found.record
      const unique = uniqueName(driverName, volumeHandle)
      await this.#mutex.run(unique, () => this.#unmountOne(found, unique))
    }
    this.#attachments.forget(uid)
    for (const key of this.#published) if (key.startsWith(`${uid}/`)) this.#published.delete(key)
    this.#options.sources.forget(uid)
  }

  async #unmountOne(found: PodVolumeRecord, unique: string): Promise<void> {
    const { uid, path, name, isBlock, record } = found
    const service = this.#serviceFor(record.driverName, 'Unmounter.TearDownAt failed to get CSI client')
    if (isBlock) {
      await unmountBlockDevice(found, { service, paths: this.#paths })
      return this.#attachments.unuse(unique, uid)
    }
    const targetPath = join(path, MOUNT)
    await service.unpublish({ volumeId: record.volumeHandle, targetPath }).catch((error: unknown) => {
      throw new Error(`${CSI_PLUGIN}: Unmounter.TearDownAt failed: ${callText(error)}`, { cause: error })
    })
    await removeRecord(path, MOUNT)
    this.#published.delete(`${uid}/${name}`)
    await this.#unstage(record.driverName, record.volumeHandle)
    this.#attachments.unuse(unique, uid)
  }

  #serviceFor(driver: string, failing: string): NodeService {
    try {
      return this.#options.drivers.service(driver)
    } catch (error) {
      throw new Error(`${CSI_PLUGIN}: ${failing}: ${(error as Error).message}`, { cause: error })
    }
  }

  /** Does nothing while a pod uses the volume. */
  async #unstage(driver: string, handle: string): Promise<void> {
    const dir = this.#paths.device(driver, handle)
    if ((await readRecord(dir)) === undefined) return
    const others = await recordsOfPods(this.#options.rootDir, this.#paths)
    if (others.some(({ record }) => record.driverName === driver && record.volumeHandle === handle)) return
    const service = this.#serviceFor(driver, 'attacher.UnmountDevice failed to create newCsiDriverClient')
    await service.unstage({ volumeId: handle, stagingTargetPath: join(dir, GLOBAL_MOUNT) }).catch((error: unknown) => {
      throw new Error(`${CSI_PLUGIN}: attacher.UnmountDevice failed: ${callText(error)}`, { cause: error })
    })
    this.#staged.delete(uniqueName(driver, handle))
    await removeRecord(dir, GLOBAL_MOUNT)
  }

  /** Unstages unused volumes that remained when the kubelet or the driver stopped. */
  async #sweep(driver: string): Promise<void> {
    const folder = this.#paths.ofDriver(driver)
    for (const name of await namesIn(folder)) {
      const record = await readRecord(join(folder, name))
      if (record === undefined) continue
      const unique = uniqueName(driver, record.volumeHandle)
      await this.#mutex.run(unique, () => this.#unstage(driver, record.volumeHandle))
    }
    await rmdir(folder).catch(() => undefined)
  }

  #podDir(uid: string, name: string): string {
    return podPaths(this.#options.rootDir, uid).volume(CSI_PLUGIN, name)
  }
}

const isRepeated = ({ object }: ServingDriver): boolean => object?.spec.requiresRepublish === true

/** The outcome of these codes is unknown, so the volume is cleaned up later. */
const UNCERTAIN: ReadonlySet<StatusName> = new Set<StatusName>([
  'cancelled',
  'deadlineExceeded',
  'unavailable',
  'resourceExhausted',
  'aborted',
])

const isFinal = (error: unknown): boolean => error instanceof GrpcError && !UNCERTAIN.has(error.code)

const blockFault = (text: string): VolumeFault =>
  new VolumeFault('MapVolume.SetUpDevice failed', `${CSI_PLUGIN}: ${text}`)

function mountDeviceFault(error: unknown): never {
  throw new VolumeFault('MountVolume.MountDevice failed', callText(error))
}

function checkSupport(source: CsiSource, object: CSIDriver | undefined): void {
  try {
    checkLifecycle(source, object)
  } catch (error) {
    const { message } = error as Error
    const text = `mounter.SetupAt failed to check volume lifecycle mode: ${message}`
    throw new Error(`${CSI_PLUGIN}: ${text}`, { cause: error })
  }
}
