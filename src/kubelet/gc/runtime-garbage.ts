/** Which dead containers and sandboxes a runtime need not keep, by upstream's rules. Pure. */
import { CONTAINER_STATE, SANDBOX_STATE } from '../cri/codes.ts'
import type { Container } from '../cri/container-messages.ts'
import type { PodSandbox } from '../cri/sandbox-messages.ts'

export interface GarbagePolicy {
  /** Dead ones that are kept of each container of a pod. */
  readonly maxPerContainer: number
  /** Dead ones in all; less than 0 for any number. */
  readonly maxContainers: number
  readonly minAgeMs: number
}

/** As upstream's: the log of the run before is for `logs --previous`. */
export const GARBAGE_POLICY: GarbagePolicy = { maxPerContainer: 1, maxContainers: -1, minAgeMs: 0 }

/** One that was made and not started may be about to be. */
const STARTING_MS = 120_000

export interface Holdings {
  readonly containers: readonly Container[]
  readonly sandboxes: readonly PodSandbox[]
  /** Of the container's or the sandbox's pod. */
  readonly uidOf: (of: { readonly labels: ReadonlyMap<string, string> }) => string
  /** Nothing of the pod is to be kept. */
  readonly isGone: (uid: string) => boolean
}

/** Ids of containers, the oldest first. */
export function deadContainers(holdings: Holdings, policy: GarbagePolicy, nowMs: number): string[] {
  const { containers, uidOf, isGone } = holdings
  const dead = containers.filter((one) => isDead(one, nowMs) && nowMs - createdMs(one) >= policy.minAgeMs)
  const units = Map.groupBy(dead, (one) => JSON.stringify([uidOf(one), one.metadata?.name ?? '']))
  const remove: Container[] = []
  const kept: Container[][] = []
  for (const unit of units.values()) {
    const [first] = unit
    const newest = unit.toSorted(newestFirst)
    const keep = first !== undefined && isGone(uidOf(first)) ? 0 : policy.maxPerContainer
    remove.push(...newest.slice(keep))
    if (keep > 0) kept.push(newest.slice(0, keep))
  }
  remove.push(...surplusOf(kept, policy.maxContainers))
  return remove.toSorted((a, b) => newestFirst(b, a)).map(({ id }) => id)
}

/** Each keeps as many as all others, at least one; then the oldest go. */
function surplusOf(units: readonly Container[][], max: number): Container[] {
  const count = units.reduce((sum, { length }) => sum + length, 0)
  if (max < 0 || count <= max) return []
  const each = Math.max(Math.trunc(max / units.length), 1)
  const left = units.flatMap((unit) => unit.slice(0, each)).toSorted(newestFirst)
  return [...units.flatMap((unit) => unit.slice(each)), ...left.slice(max)]
}

function isDead({ state, createdAt }: Container, nowMs: number): boolean {
  if (state === CONTAINER_STATE.running) return false
  return state !== CONTAINER_STATE.created || nowMs - createdMs({ createdAt }) >= STARTING_MS
}

/** Ids of sandboxes without containers that are not ready; the newest of a pod that is there stays. */
export function deadSandboxes({ containers, sandboxes, uidOf, isGone }: Holdings): string[] {
  const inhabited = new Set(containers.map(({ podSandboxId }) => podSandboxId))
  return [...Map.groupBy(sandboxes, uidOf)].flatMap(([uid, own]) =>
    own
      .toSorted(newestFirst)
      .slice(isGone(uid) ? 0 : 1)
      .filter(({ id, state }) => state !== SANDBOX_STATE.ready && !inhabited.has(id))
      .map(({ id }) => id),
  )
}

const createdMs = ({ createdAt }: Pick<Container, 'createdAt'>): number => Number(BigInt(createdAt) / 1_000_000n)

const newestFirst = (a: Pick<Container, 'createdAt'>, b: Pick<Container, 'createdAt'>): number =>
  Number(BigInt(b.createdAt) - BigInt(a.createdAt))
