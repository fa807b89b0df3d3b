/** Where a volume is to be attached and where not, decided from where it is and who wants it. Pure. */

/** Upstream's: how long a node that is not healthy may take to unmount. */
export const UNMOUNT_MS = 360_000

export interface Seen {
  readonly node: string
  /** It is there for sure: not only asked for. */
  readonly isConfirmed: boolean
  /** The node says that it uses it, or has not said anything yet. */
  readonly isMounted: boolean
  /** For how long nobody has wanted it there. */
  readonly unwantedMs: number
  readonly isHealthy: boolean
  readonly isOutOfService: boolean
}

export interface Sight {
  /** May be at several nodes at once. */
  readonly isShared: boolean
  readonly wanted: readonly string[]
  readonly attachments: readonly Seen[]
  /** Whether time alone is a reason to detach from a node that does not answer. */
  readonly mayForce: boolean
  /** Nothing may begin there: something is under way, or `what` failed a moment ago. */
  readonly isBusy: (node: string, what: 'attach' | 'detach') => boolean
}

export type Step =
  /** `isChecked`: only if the node, asked anew, does not use it. */
  | { readonly to: 'detach'; readonly node: string; readonly isChecked: boolean }
  | { readonly to: 'attach'; readonly node: string }
  /** Wanted where it cannot be, for it is elsewhere. */
  | { readonly to: 'complain'; readonly node: string; readonly elsewhere: readonly string[] }

export interface Plan {
  readonly steps: readonly Step[]
  /** When to look again, if nothing happens before. */
  readonly waitMs: number
}

export function planAttachments(sight: Sight): Plan {
  const { isShared, wanted, attachments, isBusy } = sight
  const unwanted = attachments.filter(({ node }) => !wanted.includes(node))
  const free = unwanted.filter(({ node }) => !isBusy(node, 'detach'))
  const detaching = free.flatMap((seen) => planDetach(seen, sight))
  // What may be at one node at a time does one thing at a time.
  if (!isShared && detaching.length > 0) return { steps: detaching.slice(0, 1), waitMs: Infinity }
  const confirmed = attachments.filter(({ isConfirmed }) => isConfirmed).map(({ node }) => node)
  const missing = wanted.filter((node) => !confirmed.includes(node) && !isBusy(node, 'attach'))
  const attaching = isShared ? missing.map(attach) : planExclusive(missing, confirmed)
  const waits = free.map(({ unwantedMs }) => UNMOUNT_MS - unwantedMs).filter((ms) => ms >= 0)
  // It must have been longer than that.
  return { steps: [...detaching, ...attaching], waitMs: Math.min(Infinity, ...waits) + 1 }
}

const attach = (node: string): Step => ({ to: 'attach', node })

function planDetach(seen: Seen, { mayForce }: Sight): Step[] {
  const { node, isMounted, unwantedMs, isHealthy, isOutOfService } = seen
  const isOverdue = mayForce && unwantedMs > UNMOUNT_MS
  if (isMounted && !(isOverdue && !isHealthy) && !isOutOfService) return []
  return [{ to: 'detach', node, isChecked: !isOverdue && !isOutOfService }]
}

function planExclusive(missing: readonly string[], confirmed: readonly string[]): Step[] {
  if (confirmed.length === 0) return missing.slice(0, 1).map(attach)
  return missing.map((node) => ({ to: 'complain', node, elsewhere: confirmed.filter((other) => other !== node) }))
}
