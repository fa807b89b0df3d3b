/**
 * The volumes of pods on the disk of this node. What stands in memory is only what need not be done again: after a restart
 * everything is brought once more, and finds itself there.
 */
import { mkdir, realpath } from 'node:fs/promises'

import type { Pod, Volume } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Logger } from '#lib/log.ts'

import { checkHostPath } from './host-path-check.ts'
import { nestedMounts } from './nested-mounts.ts'
import { pluginOf } from './plugins/index.ts'
import { setUpDirectory, type Tools } from './pod-directory.ts'
import { tearDown, uidsOnDisk } from './tear-down.ts'
import type { Brought, BroughtVolume, SubPathAsk, VolumeKeeper } from './volume-keeper.ts'
import { podPaths } from './volume-paths.ts'
import { type VolumeAsk, VolumeFault, type VolumePlan, type VolumePlugin, type VolumeSources } from './volume-plugin.ts'

export interface DiskVolumesOptions extends Tools {
  readonly rootDir: string
  readonly sources: VolumeSources
  readonly log: Logger
  /** Nothing of the pod is needed any more. */
  readonly onLeave: (uid: string) => void
}

export class DiskVolumes implements VolumeKeeper {
  readonly #options: DiskVolumesOptions
  /** By pod, then by volume. */
  readonly #brought = new Map<string, Map<string, BroughtVolume>>()

  constructor(options: DiskVolumesOptions) {
    this.#options = options
  }

  async bring(pod: Pod): Promise<Brought> {
    const { uid = '' } = pod.metadata
    const volumes = usedVolumes(pod)
    if (volumes.length === 0) return { mounts: new Map() }
    const known = this.#brought.get(uid) ?? new Map<string, BroughtVolume>()
    this.#brought.set(uid, known)
    const failures: string[] = []
    await Promise.all(
      volumes.map(async (volume) => {
        try {
          known.set(volume.name, await this.#bringOne({ pod, volume }, known.get(volume.name)))
        } catch (error) {
          failures.push(failureText(volume.name, error as Error))
        }
      }),
    )
    return failures.length > 0 ? { failures } : { mounts: known }
  }

  async #bringOne(ask: VolumeAsk, known: BroughtVolume | undefined): Promise<BroughtVolume> {
    const plugin = pluginOf(ask.volume)
    if (known !== undefined && !plugin.isContent) return known
    const plan = await plugin.plan(ask, this.#options.sources)
    return this.#options.clock.during(this.#setUp(ask, plugin, plan))
  }

  async #setUp({ pod, volume: { name } }: VolumeAsk, plugin: VolumePlugin, plan: VolumePlan): Promise<BroughtVolume> {
    const paths = podPaths(await this.#root(), pod.metadata.uid ?? '')
    if (plan.at === 'node') {
      await checkHostPath(plan.path, plan.type)
      return { hostPath: plan.path, readOnly: plan.readOnly }
    }
    if (plan.at === 'bind') throw new Error(`volumes of type ${plugin.name} are not supported by this kubelet`)
    const dir = paths.volume(plugin.name, name)
    await mkdir(paths.pod, { recursive: true, mode: 0o750 })
    await setUpDirectory(
      {
        ...plan,
        dir,
        ready: paths.ready(plugin.isContent ? `wrapped_${name}` : name),
        fsGroup: pod.spec.securityContext?.fsGroup,
        nested: nestedMounts(pod, name),
      },
      this.#options,
    )
    return { hostPath: dir, readOnly: plugin.isContent }
  }

  async subPath({ subPath }: SubPathAsk): Promise<string> {
    throw new Error(`failed to prepare subPath ${goQuote(subPath)}: not supported by this kubelet`)
  }

  async leave(uid: string): Promise<void> {
    const { mounter, clock, onLeave } = this.#options
    await clock.during(this.#root().then((root) => tearDown(podPaths(root, uid), mounter)))
    this.#brought.delete(uid)
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

function failureText(volume: string, error: Error): string {
  const phase = error instanceof VolumeFault ? error.phase : 'MountVolume.SetUp failed'
  return `${phase} for volume ${goQuote(volume)} : ${error.message}`
}
