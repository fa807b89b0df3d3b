/** A scheduler's client whose binds go wrong: refused, or done without an answer. */
import type { Kind } from '#apis/kinds.ts'
import { ApiClient, type Draft } from '#client/api-client.ts'
import type { VirtualClock } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import type { ControlPlane } from '#testing/control-plane.ts'

export type Failure = 'before' | 'after' | 'not at all'

export class FlakyClient extends ApiClient {
  failures: Failure[] = []
  failed = 0

  override async create<T extends KubeObject>(
    kind: Kind<T>,
    object: Draft<T>,
    options: Parameters<ApiClient['create']>[2] = {},
  ): Promise<T> {
    const failure = options.subresource === 'binding' ? this.failures.shift() : undefined
    if (failure === 'before' || failure === 'after') this.failed++
    if (failure === 'before') throw new Error('the connection was lost')
    const answer = await super.create(kind, object, options)
    if (failure === 'after') throw new Error('the answer was lost')
    return answer
  }
}

export function flakyClient(plane: ControlPlane, clock: VirtualClock): FlakyClient {
  const user = { name: 'system:kube-scheduler', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
  return new FlakyClient({ transport: plane.running.server.clientAs(user), clock, userAgent: 'flaky/v1' })
}
