/** Chooses the dead containers and sandboxes to remove, by upstream's rules. Pure. */
import type { Container, PodSandbox } from '#apis/wire/cri.ts'
import { CONTAINER_STATE, SANDBOX_STATE } from '#cri/codes.ts'

export interface GarbagePolicy {
  /** Dead containers kept per container of a pod. */
  readonly maxPerContainer: number
  /** Dead containers kept in total; negative: unlimited. */
  readonly maxContainers: number
  readonly minAgeMs: number
}

/** Upstream's default; the previous container keeps its log for `logs --previous`. */
export const GARBAGE_POLICY: GarbagePolicy = { maxPerContainer: 1, maxContainers: -1, minAgeMs: 0 }

/** A container that was created but not started may be about to start. */
const STARTING_MS = 120_000

export interface RuntimeState {
  readonly containers: readonly Container[]
  readonly sandboxes: readonly PodSandbox[]
  /** The pod UID of a container or sandbox. */
  readonly uidOf: (of: { readonly labels: ReadonlyMap<string, string> }) => string
  /** True if nothing of the pod may remain. */
  readonly isGone: (uid: string) => boolean
}

/** Container IDs, oldest first. */
export function deadContainers(runtimeState: RuntimeState, policy: GarbagePolicy, nowMs: number): string[] {
  const { containers, uidOf, isGone } = runtimeState
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

/** Limits each container to an equal share, at least one; then removes the oldest. */
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

/** IDs of sandboxes that are not ready and have no containers, except the newest of an existing pod. */
export function deadSandboxes({ containers, sandboxes, uidOf, isGone }: RuntimeState): string[] {
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
