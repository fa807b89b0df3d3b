/** Whether containers can run on this machine, and who decides when nobody has said: what a cluster was before it stays. */
import { readFile } from 'node:fs/promises'

import { findPrograms } from '#kubelet/containerd/programs.ts'

export type NodeRuntime = 'containerd' | 'simulated'

/** What containers need of a machine. */
export interface Ability {
  readonly platform: string
  readonly isRoot: boolean
  /** Root of a container is often not allowed to. */
  readonly mayMount: boolean
  /** Which programs are not there, in a sentence; undefined: all are. */
  readonly missing: string | undefined
}

/** Why no containers can run here; undefined: they can. */
export function containerFault({ platform, isRoot, mayMount, missing }: Ability): string | undefined {
  if (platform !== 'linux') return 'containers need Linux'
  if (!isRoot) return 'containers need root'
  if (!mayMount) return 'containers need the right to mount (CAP_SYS_ADMIN)'
  return missing
}

export interface Choice {
  readonly runtime: NodeRuntime
  /** What a user should know of it; undefined: it is what was asked for. */
  readonly why?: string
  /** It was asked for, or this cluster has it, and it cannot be. */
  readonly fault?: string
}

export interface Wish {
  readonly asked: 'auto' | NodeRuntime
  readonly nodes: number
  /** What the cluster of this data directory had; undefined: there is none yet. */
  readonly before: NodeRuntime | undefined
  readonly fault: string | undefined
}

export function chooseRuntime({ asked, nodes, before, fault }: Wish): Choice {
  const wanted = asked === 'auto' ? before : asked
  if (wanted === 'simulated') return { runtime: 'simulated' }
  // Many of them are meant to be light, unless containers are asked for.
  if (wanted === 'containerd') return { runtime: 'containerd', ...(fault !== undefined && nodes > 0 && { fault }) }
  if (nodes !== 1) return { runtime: 'simulated' }
  return fault === undefined ? { runtime: 'containerd' } : { runtime: 'simulated', why: fault }
}

const CAP_SYS_ADMIN = 1n << 21n

export async function readAbility(env: Readonly<Record<string, string | undefined>>): Promise<Ability> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  return {
    platform: process.platform,
    isRoot: process.getuid?.() === 0,
    mayMount: (effectiveCapabilities(status) & CAP_SYS_ADMIN) !== 0n,
    missing: await findPrograms(env).then(
      () => undefined,
      (error: Error) => error.message,
    ),
  }
}

/** Of `/proc/self/status`. */
export function effectiveCapabilities(status: string): bigint {
  return BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
}
