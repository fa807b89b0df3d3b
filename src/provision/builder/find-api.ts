/** Finds the API server of a cluster through which the builder works. */
import type { Clock } from '#lib/clock.ts'

import type { ClusterNode } from '../cluster.ts'
import { dialProblem } from '../machines/sockets.ts'
import type { ApiAddress } from '../pki/files.ts'

const PORT = 6443
const DIAL_MS = 2000

/** The first control plane that accepts connections, or the first. */
export function answeringPlane(clock: Clock): (planes: readonly ClusterNode[]) => Promise<ApiAddress> {
  return async (planes) => {
    const attempts = planes.map(async ({ address }) => ({
      host: address,
      problem: await dialProblem({ host: address, port: PORT, timeoutMs: DIAL_MS }, clock),
    }))
    const found = await Promise.all(attempts)
    return { host: (found.find(({ problem }) => problem === '') ?? found[0])?.host ?? '' }
  }
}
