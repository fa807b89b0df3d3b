/**
 * The volumes of pods on the disk of this node. What stands in memory is only what need not be done again: after a restart
 * everything is brought once more, and finds itself there.
 */
import { mkdir, realpath, rm, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { Pod, Volume } from '#apis/core/v1.ts'
import { unlessAborted } from '#lib/abort.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Logger } from '#lib/log.ts'
import { fitsNodeTerm } from '#model/node-fit.ts'

import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { VolumeFsUse } from '../node-stats.ts'
import { type BindAsk, setUpBind } from './bind-directory.ts'
import { ClaimFault, type Claimed, claimedBy, claimsText } from './claims.ts'
import type { CsiAsk } from './csi/csi-ask.ts'
import { Unattached } from './csi/csi-attachments.ts'
import { CSI_PLUGIN } from './csi/csi-names.ts'
import { deviceLink } from './csi/csi-records.ts'
import type { CsiVolumes } from './csi/csi-volumes.ts'
import { deviceMountPath, mountDevice, unmountUnusedDevices } from './device-mount.ts'
import { checkHostPath } from './host-path-check.ts'
import { nestedMounts } from './nested-mounts.ts'
import { persistentPluginOf, pluginOf } from './plugins/index.ts'
import { setUpDirectory, type Tools } from './pod-directory.ts'
import { bindSubPath, readInVolume } from './sub-path.ts'
import { tearDown, uidsOnDisk } from './tear-down.ts'
import { Turns } from './turns.ts'
import type { Brought, BroughtVolume, SubPathAsk, VolumeCount, VolumeKeeper } from './volume-keeper.ts'
import { measureDirectory } from './volume-measures.ts'
import { podPaths, podsDir } from './volume-paths.ts'
import {
  type BindPlan,
  type VolumeAsk,
  VolumeFault,
  type VolumePlan,
  type VolumePlugin,
  type VolumeSources,
} from './volume-plugin.ts'

export interface DiskVolumesOptions extends Tools {
  readonly rootDir: string
  readonly sources: VolumeSources
  readonly log: Logger
  /** Without it, no driver brings anything. */
  readonly csi?: CsiVolumes
  readonly meters: KubeletMeters
  /** Nothing of the pod is needed any more. */
  readonly onLeave: (uid: string) => void
}

/** A volume of a pod that has come. */
interface Held extends BroughtVolume {
  /** Follows what the API says. */
  readonly isContent: boolean
  /** What brought it: `kubernetes.io/empty-dir`. */
  readonly plugin: string
  readonly claim?: VolumeFsUse['claim']
  /** Who brought it, when that was a driver. */
  readonly ask?: CsiAsk
}

/** What is brought without a driver. */
type PlanOfOurs = Exclude<VolumePlan, { readonly at: 'driver' }>

/** More than any file of variables has. */
const MAX_TEXT_BYTES = 1 << 20

export class DiskVolumes implements VolumeKeeper {
  readonly #options: DiskVolumesOptions
  /** By pod, then by volume. */
  readonly #held = new Map<string, Map<string, Held>>()
  /** By pod and volume: those that could not be brought yet. */
  readonly #missing = new Set<string>()
  /** By directory of the node: pods that share one are served one after the other, so that there is a first. */
  readonly #binding = new Turns()

  constructor(options: DiskVolumesOptions) {
    this.#options = options
  }

  async bring(pod: Pod, signal: AbortSignal): Promise<Brought> {
    const { uid = '' } = pod.metadata
    const volumes = usedVolumes(pod)
    if (volumes.length === 0) return { mounts: new Map() }
    const held = this.#held.get(uid) ?? new Map<string, Held>()
    this.#held.set(uid, held)
    const errors = new Map<string, Error>()
    await Promise.all(
      volumes.map(async (volume) => {
        const { name } = volume
        const before = held.get(name)
        if (before !== undefined && !before.isContent) return
        try {
          held.set(name, await this.#bringOne({ pod, volume }, signal))
          this.#missing.delete(`${uid}/${name}`)
        } catch (error) {
          errors.set(name, error as Error)
          if (before === undefined) this.#missing.add(`${uid}/${name}`)
        }
      }),
    )
    if (errors.size === 0) return { mounts: held }
    // Nobody wants to know why a pod that is to end has no volumes.
    return { failures: signal.aborted ? [] : failuresOf(errors) }
  }

  /** The API server is not waited for by a pod that is to end; what is done on the disk is done whole. */
  async #bringOne({ pod, volume }: VolumeAsk, signal: AbortSignal): Promise<Held> {
    const { sources, clock } = this.#options
    const claimed = await unlessAborted(signal, claimedBy(pod, volume, sources))
    const name = claimed?.object.metadata.name ?? volume.name
    try {
      const plugin = claimed === undefined ? pluginOf(volume) : persistentPluginOf(claimed.object.spec)
      if (claimed !== undefined) this.#checkPlace(claimed)
      const ask = { pod, volume, ...(claimed !== undefined && { persistent: claimed }) }
      const held = await this.#timed(plugin.name, 'volume_mount', async () => {
        const plan = await unlessAborted(signal, plugin.plan(ask, sources))
        if (plan.at === 'driver') return this.#bringByDriver({ pod, name, source: plan.source }, signal)
        return { ...(await clock.during(this.#setUp(pod, name, plugin, plan))), plugin: plugin.name }
      })
      const { name: claim = '', namespace = '' } = claimed?.claim.metadata ?? {}
      return claimed === undefined ? held : { ...held, claim: { name: claim, namespace } }
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

  /** Asked again in each sync: it may have grown, or want to be published anew. */
  async #bringByDriver(ask: CsiAsk, signal: AbortSignal): Promise<Held> {
    const { csi } = this.#options
    if (csi === undefined) throw new Error('there are no drivers of volumes on this node')
    const { hostPath, isDevice, isRepeated } = await csi.bring(ask, signal)
    const isContent = isRepeated || ask.source.persistent !== undefined
    const plugin = `${CSI_PLUGIN}:${ask.source.driver}`
    return { hostPath, isDevice, readOnly: ask.source.readOnly, isContent, plugin, ask }
  }

  #checkPlace({ object: { spec } }: Claimed): void {
    const node = this.#options.sources.node()
    const terms = spec.nodeAffinity?.required?.nodeSelectorTerms
    if (node === undefined || terms === undefined || terms.some((term) => fitsNodeTerm(term, node))) return
    throw new VolumeFault('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms')
  }

  async #setUp(pod: Pod, name: string, plugin: VolumePlugin, plan: PlanOfOurs): Promise<Omit<Held, 'plugin'>> {
    const { isContent } = plugin
    if (plan.at === 'node') {
      await checkHostPath(plan.path, plan.type)
      return { hostPath: plan.path, readOnly: plan.readOnly, isContent }
    }
    if (plan.at === 'runtime') return { hostPath: '', readOnly: true, image: plan.image, isContent }
    const root = await this.#root()
    const { uid = '' } = pod.metadata
    if (plan.at === 'device') {
      await checkHostPath(plan.path, 'BlockDevice')
      const link = deviceLink(root, uid, plugin.name, name)
      await mkdir(dirname(link), { recursive: true, mode: 0o750 })
      await rm(link, { force: true })
      await symlink(plan.path, link)
      return { hostPath: link, isDevice: true, readOnly: plan.readOnly, isContent }
    }
    const paths = podPaths(root, uid)
    const dir = paths.volume(plugin.name, name)
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {}
    await mkdir(paths.pod, { recursive: true, mode: 0o750 })
    if (plan.at === 'bind') {
      await this.#bind(plan, root, { dir, podsDir: podsDir(root), fsGroup, policy })
      return { hostPath: dir, readOnly: plan.readOnly, isContent }
    }
    const ready = paths.ready(isContent ? `wrapped_${name}` : name)
    await setUpDirectory({ ...plan, dir, ready, fsGroup, nested: nestedMounts(pod, name) }, this.#options)
    return { hostPath: dir, readOnly: isContent, isContent }
  }

  async #bind(plan: BindPlan, root: string, target: Omit<BindAsk, 'from' | 'readOnly' | 'options'>): Promise<void> {
    const { readOnly, options } = plan
    const mountPath = await deviceMountPath(root, plan.from, plan.name)
    const from = mountPath ?? plan.from
    await this.#binding.take(from, async () => {
      if (mountPath !== undefined) await mountDevice({ ...plan, device: plan.from, target: mountPath }, this.#options)
      await setUpBind({ ...target, from, readOnly, options }, this.#options.mounter)
    })
  }

  subPath(ask: SubPathAsk): Promise<string> {
    const { mounter, clock, log } = this.#options
    const { uid: podUID, container, volume, index } = ask
    const onError = (error: unknown): void =>
      log.error(error, 'Failed to prepare subPath for volumeMount of the container', { podUID, container, volume })
    return clock.during(
      this.#root().then((root) => {
        const target = podPaths(root, podUID).subPath(volume, container, index)
        return bindSubPath(ask, target, { mounter, onError })
      }),
    )
  }

  read(hostPath: string, path: string): Promise<string> {
    return this.#options.clock.during(readInVolume(hostPath, path, MAX_TEXT_BYTES))
  }

  async leave(uid: string): Promise<void> {
    const { clock, onLeave, csi } = this.#options
    // Drivers unmount what is theirs.
    if (csi !== undefined) await clock.during(csi.leave(uid))
    await clock.during(this.#tearDown(uid))
    this.#held.delete(uid)
    for (const key of this.#missing) if (key.startsWith(`${uid}/`)) this.#missing.delete(key)
    onLeave(uid)
  }

  async #tearDown(uid: string): Promise<void> {
    const { mounter } = this.#options
    const root = await this.#root()
    await tearDown(podPaths(root, uid), mounter)
    await unmountUnusedDevices(root, mounter, this.#binding)
  }

  /** What cannot be measured is left out. */
  async measure(uid: string): Promise<readonly VolumeFsUse[]> {
    const { csi, clock, log, meters } = this.#options
    const measured: VolumeFsUse[] = []
    for (const [name, { plugin, hostPath, claim, ask }] of this.#held.get(uid) ?? []) {
      const startMs = clock.elapsed()
      try {
        const use =
          ask === undefined ? await measureDirectory(plugin, hostPath, clock) : await csi?.measure(ask, hostPath)
        if (use === undefined) continue
        measured.push({ ...use, name, ...(claim !== undefined && { claim }) })
        const durations = meters.family('kubelet_volume_metric_collection_duration_seconds').labels(plugin)
        durations.observe((clock.elapsed() - startMs) / 1000)
      } catch (error) {
        log.v(4)?.info('A volume could not be measured', { volume: name, podUID: uid, err: String(error) })
      }
    }
    return measured
  }

  *counts(): Iterable<VolumeCount> {
    const all = [...this.#held.values()].flatMap((held) => [...held.values()])
    const missing = this.#missing.size
    for (const [plugin, those] of Map.groupBy(all, (one) => one.plugin)) {
      yield { plugin, desired: those.length, actual: those.length }
    }
    // Of those nobody knows yet by what they will come.
    if (missing > 0) yield { plugin: 'N/A', desired: missing, actual: 0 }
  }

  uids(): Promise<readonly string[]> {
    return this.#options.clock.during(this.#root().then(uidsOnDisk))
  }

  /** Without links: what is mounted where is told that way. */
  async #root(): Promise<string> {
    const { rootDir } = this.#options
    return realpath(rootDir).catch(() => rootDir)
  }
}

/** Those that a container mounts; nobody waits for others. */
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

/** One message for each, and one for all claims together. */
function failuresOf(errors: ReadonlyMap<string, Error>): string[] {
  const faults = new Map<string, ClaimFault>()
  for (const [name, error] of errors) if (error instanceof ClaimFault) faults.set(name, error)
  const waiting = [...errors].filter(([, error]) => error instanceof Unattached).map(([name]) => name)
  const others = [...errors.values()].filter((error) => !(error instanceof ClaimFault || error instanceof Unattached))
  const isLate = faults.size > 0 || waiting.length > 0
  const claims = isLate ? [claimsText([...errors.keys()], faults, waiting)] : []
  return [...others.map(({ message }) => message), ...claims]
}
