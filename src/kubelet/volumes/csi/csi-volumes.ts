/**
 * Volumes that drivers bring: attached by others, staged once on this node, published to each pod, and all of it undone in the
 * other direction. What is to be undone is on the disk before a driver is asked, so that a restart forgets nothing.
 */
import { mkdir, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'
import type { Clock } from '#lib/clock.ts'
import { GrpcError, type StatusName } from '#lib/grpc/status.ts'
import type { Logger } from '#lib/log.ts'

import { callText } from '../../cri/call-text.ts'
import type { Note } from '../../kubelet-notes.ts'
import type { FsUse } from '../../node-stats.ts'
import { setOwnership } from '../ownership.ts'
import { Turns } from '../turns.ts'
import { driverUse } from '../volume-measures.ts'
import { podPaths } from '../volume-paths.ts'
import { VolumeFault } from '../volume-plugin.ts'
import type { Asked, CsiAsk } from './csi-ask.ts'
import { CsiAttachments } from './csi-attachments.ts'
import { bringDevice, leaveDevice } from './csi-block.ts'
import type { CsiDrivers } from './csi-drivers.ts'
import { growthOf } from './csi-growth.ts'
import { attachmentName, CSI_PLUGIN, csiPaths, type CsiPaths, uniqueName } from './csi-names.ts'
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
import { capabilityOf, checkLifecycle, type CsiSource, needsAttachment, takesGroup } from './csi-source.ts'
import { type CsiSources, secretsOf, toldOf } from './csi-sources.ts'

export interface CsiVolumesOptions {
  readonly rootDir: string
  readonly nodeName: string
  readonly drivers: CsiDrivers
  readonly sources: CsiSources
  readonly clock: Clock
  readonly log: Logger
  readonly note: (pod: Pod, said: Note) => void
  /** What the node says to be in use has changed. */
  readonly onInUse: () => void
}

export interface CsiBrought {
  readonly hostPath: string
  readonly isDevice: boolean
  /** Wants to be published again now and then. */
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
  readonly #turns = new Turns()
  readonly #attachments: CsiAttachments
  /** By unique name. */
  readonly #staged = new Set<string>()
  /** By pod and volume. */
  readonly #published = new Set<string>()

  constructor(options: CsiVolumesOptions) {
    this.#options = options
    this.#paths = csiPaths(options.rootDir)
    this.#attachments = new CsiAttachments(options)
    options.drivers.onRegistered = (driver) =>
      void this.#sweep(driver).catch((error: unknown) =>
        options.log.error(error, 'Staged volumes are left', { driver }),
      )
  }

  /** For the status of the node: nobody may detach these. */
  get inUse(): readonly string[] {
    return this.#attachments.inUse
  }

  /** What was in use before a restart still is. */
  async start(): Promise<void> {
    for (const { uid, record } of await recordsOfPods(this.#options.rootDir, this.#paths)) {
      const isAttachable = record.volumeLifecycleMode !== 'Ephemeral'
      if (isAttachable) this.#attachments.use(uniqueName(record.driverName, record.volumeHandle), uid)
    }
  }

  async bring(ask: CsiAsk, signal: AbortSignal): Promise<CsiBrought> {
    const { source, pod } = ask
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
      this.#turns.take(unique, async () => {
        const asked = await this.#ask(source, object, publishContext)
        const hostPath = source.isBlock ? await this.#bringDevice(ask, asked) : await this.#bringFiles(ask, asked)
        return { hostPath, isDevice: source.isBlock, isRepeated: isRepeated(asked) }
      }),
    )
  }

  async #ask(
    source: CsiSource,
    object: CSIDriver | undefined,
    publishContext: Asked['publishContext'],
  ): Promise<Asked> {
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
      const said = `${CSI_PLUGIN}: attacher.MountDevice failed to create newCsiDriverClient: ${text}`
      throw new VolumeFault('MountVolume.MountDevice failed', said)
    }
  }

  async #bringFiles(ask: CsiAsk, asked: Asked): Promise<string> {
    const { pod, name, source } = ask
    const key = `${pod.metadata.uid}/${name}`
    const dir = this.#podDir(pod.metadata.uid ?? '', name)
    const path = join(dir, MOUNT)
    const isStaging = source.lifecycle === 'Persistent' && asked.capabilities.has(CAPABILITY.stage)
    const staging = isStaging ? join(this.#paths.device(source.driver, source.handle), GLOBAL_MOUNT) : ''
    if (isStaging) await this.#stage(ask, asked, staging)
    const wasPublished = this.#published.has(key)
    if (!wasPublished || isRepeated(asked)) await this.#publish(ask, asked, { dir, staging, wasPublished })
    this.#published.add(key)
    await this.#grow(ask, asked, { volumePath: path, stagingTargetPath: staging })
    return path
  }

  /** Once for all pods of the node. */
  async #stage({ pod, source }: CsiAsk, asked: Asked, stagingTargetPath: string): Promise<void> {
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
      await asked.service.stage({
        volumeId: volumeHandle,
        publishContext: asked.publishContext,
        stagingTargetPath,
        volumeCapability: capabilityOf(source, asked.capabilities, this.#mountGroup(pod, asked)),
        secrets,
        volumeContext: new Map(Object.entries(source.attributes)),
      })
    } catch (error) {
      if (isFinal(error)) await removeRecord(dir, GLOBAL_MOUNT).catch(() => undefined)
      mountDeviceFault(error)
    }
    this.#staged.add(unique)
  }

  #mountGroup(pod: Pod, { capabilities }: Asked): number | undefined {
    return capabilities.has(CAPABILITY.mountGroup) ? pod.spec.securityContext?.fsGroup : undefined
  }

  async #publish(
    ask: CsiAsk,
    asked: Asked,
    { dir, staging, wasPublished }: { dir: string; staging: string; wasPublished: boolean },
  ): Promise<void> {
    const { pod, name, source } = ask
    const { nodeName } = this.#options
    checkSupport(source, asked.object)
    const { attributes, secrets } = await toldOf(this.#options.sources, ask, asked.object)
    await writeRecord(dir, {
      specVolID: name,
      volumeHandle: source.handle,
      driverName: source.driver,
      nodeName,
      volumeLifecycleMode: source.lifecycle,
      attachmentID: attachmentName(source.handle, source.driver, nodeName),
    })
    try {
      await asked.service.publish({
        volumeId: source.handle,
        publishContext: asked.publishContext,
        stagingTargetPath: staging,
        targetPath: join(dir, MOUNT),
        volumeCapability: capabilityOf(source, asked.capabilities, this.#mountGroup(pod, asked)),
        readonly: source.readOnly,
        secrets,
        volumeContext: attributes,
      })
    } catch (error) {
      // Whatever is there a pod may be looking at.
      if (isFinal(error) && !wasPublished) await removeRecord(dir, MOUNT).catch(() => undefined)
      throw new Error(callText(error), { cause: error })
    }
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {}
    const isDriversWork = asked.capabilities.has(CAPABILITY.mountGroup)
    if (isDriversWork || !takesGroup(source, fsGroup, asked.object)) return
    await setOwnership(join(dir, MOUNT), { fsGroup, readOnly: false, policy }).catch((error: Error) => {
      throw new Error(`applyFSGroup failed for vol ${source.handle}: ${error.message}`, { cause: error })
    })
  }

  async #bringDevice(ask: CsiAsk, asked: Asked): Promise<string> {
    const { source, name, pod } = ask
    const { rootDir, sources } = this.#options
    const secrets = {
      stage: await secretsOf(sources, source.stageSecret, 'NodeStageSecretRef'),
      publish: await secretsOf(sources, source.publishSecret, 'NodePublishSecretRef'),
    }
    const key = `${pod.metadata.uid}/${name}`
    const isStaged = this.#published.has(key)
    const link = await bringDevice(ask, { asked, secrets, rootDir, paths: this.#paths, isThere: isStaged })
    this.#published.add(key)
    const staging = asked.capabilities.has(CAPABILITY.stage) ? this.#paths.blockStaging(name) : ''
    const volumePath = this.#paths.blockPublish(name, pod.metadata.uid ?? '')
    await this.#grow(ask, asked, { volumePath, stagingTargetPath: staging })
    return link
  }

  /** What its driver says of a volume that was brought; undefined where it says nothing. */
  async measure({ pod, name, source }: CsiAsk, hostPath: string): Promise<CsiMeasure | undefined> {
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

  /** Does the node's part when what stands behind the claim has grown. A pod that runs goes on without. */
  async #grow(
    { pod, name, source }: CsiAsk,
    { service, capabilities }: Asked,
    at: { readonly volumePath: string; readonly stagingTargetPath: string },
  ): Promise<void> {
    const requiredBytes = growthOf(source)
    if (requiredBytes === undefined || !capabilities.has(CAPABILITY.expand)) return
    const { note, sources } = this.#options
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
      note(pod, { type: 'Normal', reason: 'FileSystemResizeSuccessful', message })
    } catch (error) {
      const why = `Expander.NodeExpand failed to expand the volume : ${callText(error)}`
      const message = `NodeExpandVolume.NodeExpandVolume failed for volume "${name}" : ${why}`
      note(pod, { type: 'Warning', reason: 'VolumeResizeFailed', message })
    }
  }

  /** Everything of a pod, and of the node what no other pod has. Rejects while a driver that is needed is not there. */
  async leave(uid: string): Promise<void> {
    const { rootDir } = this.#options
    for (const found of await recordsOfPod(rootDir, uid, this.#paths)) {
      const { driverName, volumeHandle } = found.record
      const unique = uniqueName(driverName, volumeHandle)
      await this.#turns.take(unique, () => this.#leaveOne(found, unique))
    }
    this.#attachments.forget(uid)
    for (const key of this.#published) if (key.startsWith(`${uid}/`)) this.#published.delete(key)
    this.#options.sources.forget(uid)
  }

  async #leaveOne(found: PodVolumeRecord, unique: string): Promise<void> {
    const { uid, path, name, isBlock, record } = found
    const service = this.#serviceFor(record.driverName, 'Unmounter.TearDownAt failed to get CSI client')
    if (isBlock) {
      await leaveDevice(found, { service, paths: this.#paths })
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

  /** Unless a pod has it. */
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

  /** Volumes that were staged when the kubelet or the driver ended, and that nobody has. */
  async #sweep(driver: string): Promise<void> {
    const folder = this.#paths.ofDriver(driver)
    for (const name of await namesIn(folder)) {
      const record = await readRecord(join(folder, name))
      if (record === undefined) continue
      const unique = uniqueName(driver, record.volumeHandle)
      await this.#turns.take(unique, () => this.#unstage(driver, record.volumeHandle))
    }
    await rmdir(folder).catch(() => undefined)
  }

  #podDir(uid: string, name: string): string {
    return podPaths(this.#options.rootDir, uid).volume(CSI_PLUGIN, name)
  }
}

const isRepeated = ({ object }: Asked): boolean => object?.spec.requiresRepublish === true

/** What drivers may still be at: nobody knows what came of it, and it is undone later. */
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
