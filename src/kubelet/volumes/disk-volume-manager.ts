/**
 * Volume manager: sets up and removes the volumes of pods on this node. A restarted kubelet sets up every volume again,
 * which changes nothing on disk.
 */
import { realpath } from 'node:fs/promises'

import type { Pod, Volume } from '#apis/core/v1.ts'
import { unlessAborted } from '#lib/abort.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Logger } from '#lib/log/log.ts'
import { fitsNodeTerm } from '#model/nodes/fit.ts'

import type { VolumeFsUse } from '../machine/node-stats.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { type Claimed, claimedBy, ClaimFault, claimsText } from './claims.ts'
import { Unattached } from './csi/csi-attachments.ts'
import { CSI_PLUGIN } from './csi/csi-names.ts'
import type { CsiRequest } from './csi/csi-request.ts'
import type { CsiVolumes } from './csi/csi-volumes.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import { unmountUnusedDevices } from './mounts/device-mount.ts'
import type { DirectoryTools } from './mounts/pod-directory.ts'
import { bindSubPath, readInVolume } from './mounts/sub-path.ts'
import { tearDown, uidsOnDisk } from './mounts/tear-down.ts'
import { persistentPluginOf, pluginOf } from './plugins/index.ts'
import { type DiskPlan, setUpVolume, type VolumeTarget } from './set-up.ts'
import { VolumeFault } from './volume-fault.ts'
import type { MountedVolume, MountResult, SubPathRequest, VolumeCount, VolumeManager } from './volume-manager.ts'
import { podPaths } from './volume-paths.ts'
import type { VolumePlugin, VolumeRequest, VolumeSources } from './volume-plugin.ts'
import { measureDirectory } from './volume-usage.ts'

export interface DiskVolumeManagerOptions extends DirectoryTools {
  readonly rootDir: string
  readonly sources: VolumeSources
  readonly log: Logger
  /** Default: no CSI volumes. */
  readonly csi?: CsiVolumes | undefined
  readonly meters: KubeletMeters
  /** Called when all volumes of a pod are torn down. */
  readonly onUnmounted: (uid: string) => void
}

/** A mounted volume of a pod. */
interface VolumeState extends MountedVolume {
  /** The content follows the API. */
  readonly isContent: boolean
  /** The plugin name: `kubernetes.io/empty-dir`. */
  readonly plugin: string
  readonly claim?: VolumeFsUse['claim']
  readonly usage?: VolumePlugin['usage']
  /** Set for CSI volumes. */
  readonly request?: CsiRequest
}

/** Larger than any environment file. */
const MAX_TEXT_BYTES = 1 << 20

export class DiskVolumeManager implements VolumeManager {
  readonly #options: DiskVolumeManagerOptions
  /** By pod, then by volume. */
  readonly #mounted = new Map<string, Map<string, VolumeState>>()
  /** Keys of pod and volume that are not mounted yet. */
  readonly #missing = new Set<string>()
  readonly #bindMutex = new KeyedMutex()

  constructor(options: DiskVolumeManagerOptions) {
    this.#options = options
  }

  async mount(pod: Pod, signal: AbortSignal): Promise<MountResult> {
    const { uid = '' } = pod.metadata
    const volumes = usedVolumes(pod)
    if (volumes.length === 0) return { mounts: new Map() }
    const mounted = this.#mounted.get(uid) ?? new Map<string, VolumeState>()
    this.#mounted.set(uid, mounted)
    const errors = new Map<string, Error>()
    await Promise.all(
      volumes.map(async (volume) => {
        const { name } = volume
        const before = mounted.get(name)
        if (before !== undefined && !before.isContent) return
        try {
          mounted.set(name, await this.#mountOne({ pod, volume }, signal))
          this.#missing.delete(`${uid}/${name}`)
        } catch (error) {
          errors.set(name, error as Error)
          if (before === undefined) this.#missing.add(`${uid}/${name}`)
        }
      }),
    )
    if (errors.size === 0) return { mounts: mounted }
    // An ending pod needs no error messages.
    return { failures: signal.aborted ? [] : failuresOf(errors) }
  }

  /** Requests to the API server are aborted when the pod ends; work on disk is always completed. */
  async #mountOne({ pod, volume }: VolumeRequest, signal: AbortSignal): Promise<VolumeState> {
    const { sources, clock } = this.#options
    const claimed = await unlessAborted(signal, claimedBy(pod, volume, sources))
    const name = claimed?.object.metadata.name ?? volume.name
    try {
      const plugin = claimed === undefined ? pluginOf(volume) : persistentPluginOf(claimed.object.spec)
      if (claimed !== undefined) this.#checkNodeAffinity(claimed)
      const request = { pod, volume, ...(claimed !== undefined && { persistent: claimed }) }
      const mounted = await this.#timed(plugin.name, 'volume_mount', async () => {
        const plan = await unlessAborted(signal, plugin.plan(request, sources))
        if (plan.at === 'driver') return this.#mountWithDriver({ pod, name, source: plan.source }, signal)
        return clock.during(this.#setUp({ pod, name, plugin }, plan))
      })
      const { name: claim = '', namespace = '' } = claimed?.claim.metadata ?? {}
      return claimed === undefined ? mounted : { ...mounted, claim: { name: claim, namespace } }
    } catch (error) {
      if (error instanceof Unattached) throw error
      const phase = error instanceof VolumeFault ? error.phase : 'MountVolume.SetUp failed'
      const text = `${phase} for volume ${goQuote(name)} : ${(error as Error).message}`
      throw new Error(text, { cause: error })
    }
  }

  async #timed<T>(plugin: string, operation: string, work: () => Promise<T>): Promise<T> {
    const { clock, meters } = this.#options
    const startMs = clock.elapsed()
    let status = 'fail-unknown'
    try {
      const done = await work()
      status = 'success'
      const totals = meters.family('volume_operation_total_seconds').labels(plugin, operation)
      totals.observe((clock.elapsed() - startMs) / 1000)
      return done
    } finally {
      const durations = meters.family('storage_operation_duration_seconds')
      durations.labels(plugin, operation, status, 'false').observe((clock.elapsed() - startMs) / 1000)
    }
  }

  /** Repeated in each sync: the volume may have been expanded or need republishing. */
  async #mountWithDriver(request: CsiRequest, signal: AbortSignal): Promise<VolumeState> {
    const { csi } = this.#options
    if (csi === undefined) throw new Error('CSI volumes are not supported on this node')
    const { hostPath, isDevice, isRepeated } = await csi.mount(request, signal)
    const isContent = isRepeated || request.source.persistent !== undefined
    const plugin = `${CSI_PLUGIN}:${request.source.driver}`
    return { hostPath, isDevice, readOnly: request.source.readOnly, isContent, plugin, request }
  }

  #checkNodeAffinity({ object: { spec } }: Claimed): void {
    const node = this.#options.sources.node()
    const terms = spec.nodeAffinity?.required?.nodeSelectorTerms
    if (node === undefined || terms === undefined || terms.some((term) => fitsNodeTerm(term, node))) return
    throw new VolumeFault('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms')
  }

  async #setUp(target: Omit<VolumeTarget, 'root'>, plan: DiskPlan): Promise<VolumeState> {
    const { name: plugin, isContent, usage } = target.plugin
    const tools = { ...this.#options, bindMutex: this.#bindMutex }
    return { ...(await setUpVolume(plan, { ...target, root: await this.#root() }, tools)), plugin, isContent, usage }
  }

  subPath(request: SubPathRequest): Promise<string> {
    const { mounter, clock, log } = this.#options
    const { uid: podUID, container, volume, index } = request
    const onError = (error: unknown): void =>
      log.error(error, 'Failed to prepare subPath for volumeMount of the container', { podUID, container, volume })
    return clock.during(
      this.#root().then((root) => {
        const target = podPaths(root, podUID).subPath(volume, container, index)
        return bindSubPath(request, target, { mounter, onError })
      }),
    )
  }

  read(hostPath: string, path: string): Promise<string> {
    return this.#options.clock.during(readInVolume(hostPath, path, MAX_TEXT_BYTES))
  }

  async unmount(uid: string): Promise<void> {
    const { clock, onUnmounted, csi } = this.#options
    // CSI drivers unmount their own volumes.
    if (csi !== undefined) await clock.during(csi.unmount(uid))
    await clock.during(this.#tearDown(uid))
    this.#mounted.delete(uid)
    for (const key of this.#missing) if (key.startsWith(`${uid}/`)) this.#missing.delete(key)
    onUnmounted(uid)
  }

  async #tearDown(uid: string): Promise<void> {
    const { mounter } = this.#options
    const root = await this.#root()
    await tearDown(podPaths(root, uid), mounter)
    await unmountUnusedDevices(root, mounter, this.#bindMutex)
  }

  /** Volumes that cannot be measured are omitted. */
  async measure(uid: string): Promise<readonly VolumeFsUse[]> {
    const { csi, clock, log, meters } = this.#options
    const measured: VolumeFsUse[] = []
    for (const [name, { plugin, usage, hostPath, claim, request }] of this.#mounted.get(uid) ?? []) {
      const startMs = clock.elapsed()
      try {
        const use =
          request === undefined ? await measureDirectory(usage, hostPath, clock) : await csi?.measure(request, hostPath)
        if (use === undefined) continue
        measured.push({ ...use, name, ...(claim !== undefined && { claim }) })
        const durations = meters.family('kubelet_volume_metric_collection_duration_seconds').labels(plugin)
        durations.observe((clock.elapsed() - startMs) / 1000)
      } catch (error) {
        log.v(4)?.info('Failed to measure volume usage', { volume: name, podUID: uid, err: String(error) })
      }
    }
    return measured
  }

  *counts(): Iterable<VolumeCount> {
    const all = [...this.#mounted.values()].flatMap((mounted) => [...mounted.values()])
    const missing = this.#missing.size
    for (const [plugin, those] of Map.groupBy(all, (one) => one.plugin)) {
      yield { plugin, desired: those.length, actual: those.length }
    }
    // Their plugin is not known yet.
    if (missing > 0) yield { plugin: 'N/A', desired: missing, actual: 0 }
  }

  uids(): Promise<readonly string[]> {
    return this.#options.clock.during(this.#root().then(uidsOnDisk))
  }

  /** The root directory without links, because the mount table contains resolved paths. */
  async #root(): Promise<string> {
    const { rootDir } = this.#options
    return realpath(rootDir).catch(() => rootDir)
  }
}

/** Volumes that a container uses; others are not mounted. */
function usedVolumes({ spec }: Pod): Volume[] {
  const { volumes = [], initContainers = [], containers, ephemeralContainers = [] } = spec
  const all = [...initContainers, ...containers, ...ephemeralContainers]
  const used = new Set(
    all.flatMap(({ volumeMounts = [], volumeDevices = [], env = [] }) => [
      ...volumeMounts.map(({ name }) => name),
      ...volumeDevices.map(({ name }) => name),
      ...env.flatMap(({ valueFrom }) => valueFrom?.fileKeyRef?.volumeName ?? []),
    ]),
  )
  return volumes.filter(({ name }) => used.has(name))
}

/** One message per volume, and one for all claims together. */
function failuresOf(errors: ReadonlyMap<string, Error>): string[] {
  const faults = new Map<string, ClaimFault>()
  for (const [name, error] of errors) if (error instanceof ClaimFault) faults.set(name, error)
  const waiting = [...errors].filter(([, error]) => error instanceof Unattached).map(([name]) => name)
  const others = [...errors.values()].filter((error) => !(error instanceof ClaimFault || error instanceof Unattached))
  const isLate = faults.size > 0 || waiting.length > 0
  const claims = isLate ? [claimsText([...errors.keys()], faults, waiting)] : []
  return [...others.map(({ message }) => message), ...claims]
}
