/** Chooses the devices for a container among the free ones. Pure. */

export interface DeviceRequest {
  readonly resource: string
  /** The requested number. */
  readonly required: number
  /** Devices from before a restart. */
  readonly has: ReadonlySet<string> | undefined
  /** Undefined: the resource is not registered. */
  readonly healthy: ReadonlySet<string> | undefined
  /** Devices of init containers that will have ended; they are used first. */
  readonly reusable: ReadonlySet<string>
  /** Devices of any container. */
  readonly taken: ReadonlySet<string>
}

export interface Candidates {
  /** Already chosen. */
  readonly chosen: readonly string[]
  readonly needed: number
  /** Choose the remaining devices from these. */
  readonly available: readonly string[]
}

/** Undefined: nothing to allocate. Throws the reason of the rejection. */
export function candidatesOf(request: DeviceRequest & { readonly who: string }): Candidates | undefined {
  const { resource, required, has, healthy, reusable, taken, who } = request
  if (has !== undefined && has.size !== required) {
    throw new Error(`${who} changed request for resource "${resource}" from ${has.size} to ${required}`)
  }
  if (has !== undefined && healthy === undefined) return undefined
  if (healthy === undefined) throw new Error(`cannot allocate unregistered device ${resource}`)
  if (healthy.size === 0) {
    throw new Error(`no healthy devices present; cannot allocate unhealthy devices ${resource}`)
  }
  if (has !== undefined && ![...has].every((id) => healthy.has(id))) {
    const why = 'previously allocated devices are no longer healthy'
    throw new Error(`${why}; cannot allocate unhealthy devices ${resource}`)
  }
  if (has !== undefined || required === 0) return undefined
  const chosen = [...reusable].sort().slice(0, required)
  const needed = required - chosen.length
  const available = [...healthy].filter((id) => !taken.has(id) && !chosen.includes(id)).sort()
  if (available.length < needed) {
    const counts = `Requested: ${needed}, Available: ${available.length}`
    throw new Error(`requested number of devices unavailable for ${resource}. ${counts}`)
  }
  return { chosen, needed, available }
}

/** Devices on the wanted NUMA nodes first, then others, then those without affinity. */
export function byNearness(
  available: readonly string[],
  nodesOf: (id: string) => readonly number[],
  wanted: readonly number[] | undefined,
): { readonly near: string[]; readonly others: string[] } {
  if (wanted === undefined || !available.some((id) => nodesOf(id).length > 0))
    return { near: [], others: [...available] }
  const near = available.filter((id) => nodesOf(id).some((node) => wanted.includes(node)))
  const far = available.filter((id) => !near.includes(id))
  const isAnywhere = (id: string): boolean => nodesOf(id).length === 0
  return { near, others: [...far.filter((id) => !isAnywhere(id)), ...far.filter(isAnywhere)] }
}
