/**
 * The volumes of pods on the disk of this node. What stands in memory is only what need not be done again: after a restart
 * everything is brought once more, and finds itself there.
 */
import { mkdir, realpath } from 'node:fs/promises'

import type { Pod, Volume } from '#apis/core/v1.ts'
import { unlessAborted } from '#lib/abort.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Logger } from '#lib/log.ts'
import { fitsNodeTerm } from '#model/node-fit.ts'

import { setUpBind } from './bind-directory.ts'
import { ClaimFault, type Claimed, claimedBy, claimsText } from './claims.ts'
import { checkHostPath } from './host-path-check.ts'
import { nestedMounts } from './nested-mounts.ts'
import { persistentPluginOf, pluginOf } from './plugins/index.ts'
import { setUpDirectory, type Tools } from './pod-directory.ts'
import { bindSubPath, readInVolume } from './sub-path.ts'
import { tearDown, uidsOnDisk } from './tear-down.ts'
import type { Brought, BroughtVolume, SubPathAsk, VolumeKeeper } from './volume-keeper.ts'
import { podPaths, podsDir } from './volume-paths.ts'
import { type VolumeAsk, VolumeFault, type VolumePlan, type VolumePlugin, type VolumeSources } from './volume-plugin.ts'

export interface DiskVolumesOptions extends Tools {
  readonly rootDir: string
  readonly sources: VolumeSources
  readonly log: Logger
  /** Nothing of the pod is needed any more. */
  readonly onLeave: (uid: string) => void
}

/** A volume of a pod that has come. */
interface Held extends BroughtVolume {
  /** Follows what the API says. */
  readonly isContent: boolean
}

/** More than any file of variables has. */
const MAX_TEXT_BYTES = 1 << 20

export class DiskVolumes implements VolumeKeeper {
  readonly #options: DiskVolumesOptions
  /** By pod, then by volume. */
  readonly #held = new Map<string, Map<string, Held>>()
  /** By directory of the node. */
  readonly #binding = new Map<string, Promise<void>>()

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
        } catch (error) {
          errors.set(name, error as Error)
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
      const plan = await unlessAborted(signal, plugin.plan(ask, sources))
      return await clock.during(this.#setUp(pod, name, plugin, plan))
    } catch (error) {
      const phase = error instanceof VolumeFault ? error.phase : 'MountVolume.SetUp failed'
      const text = `${phase} for volume ${goQuote(name)} : ${(error as Error).message}`
      throw new Error(text, { cause: error })
    }
  }

  #checkPlace({ object: { spec } }: Claimed): void {
    const node = this.#options.sources.node()
    const terms = spec.nodeAffinity?.required?.nodeSelectorTerms
    if (node === undefined || terms === undefined || terms.some((term) => fitsNodeTerm(term, node))) return
    throw new VolumeFault('MountVolume.NodeAffinity check failed', 'no matching NodeSelectorTerms')
  }

  async #setUp(pod: Pod, name: string, plugin: VolumePlugin, plan: VolumePlan): Promise<Held> {
    const { isContent } = plugin
    if (plan.at === 'node') {
      await checkHostPath(plan.path, plan.type)
      return { hostPath: plan.path, readOnly: plan.readOnly, isContent }
    }
    if (plan.at === 'runtime') return { hostPath: '', readOnly: true, image: plan.image, isContent }
    const root = await this.#root()
    const paths = podPaths(root, pod.metadata.uid ?? '')
    const dir = paths.volume(plugin.name, name)
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext ?? {}
    await mkdir(paths.pod, { recursive: true, mode: 0o750 })
    if (plan.at === 'bind') {
      const ask = { ...plan, dir, podsDir: podsDir(root), fsGroup, policy }
      await this.#inTurn(plan.from, () => setUpBind(ask, this.#options.mounter))
      return { hostPath: dir, readOnly: plan.readOnly, isContent }
    }
    const ready = paths.ready(isContent ? `wrapped_${name}` : name)
    await setUpDirectory({ ...plan, dir, ready, fsGroup, nested: nestedMounts(pod, name) }, this.#options)
    return { hostPath: dir, readOnly: isContent, isContent }
  }

  /** Pods that have the same directory come one after the other: there is a first. */
  async #inTurn(path: string, work: () => Promise<void>): Promise<void> {
    const mine = (this.#binding.get(path) ?? Promise.resolve()).then(work)
    const settled = mine.catch(() => undefined)
    this.#binding.set(path, settled)
    await mine.finally(() => {
      if (this.#binding.get(path) === settled) this.#binding.delete(path)
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
    const { mounter, clock, onLeave } = this.#options
    await clock.during(this.#root().then((root) => tearDown(podPaths(root, uid), mounter)))
    this.#held.delete(uid)
    onLeave(uid)
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
  const others = [...errors.values()].filter((error) => !(error instanceof ClaimFault))
  const claims = faults.size === 0 ? [] : [claimsText([...errors.keys()], faults)]
  return [...others.map(({ message }) => message), ...claims]
}
