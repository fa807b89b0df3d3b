/** Starts the scheduler for a test control plane: in its process, on its clock. */
import { ApiClient } from '#client/api-client.ts'
import { createGates } from '#component/flags/gates.ts'
import type { Clock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type RunningScheduler, type SchedulerOptions, startScheduler } from '#scheduler/start.ts'
import { type ControlPlane, errorLog } from '#testing/control-plane.ts'

export interface TestScheduler extends AsyncDisposable {
  /** Has all permissions. */
  readonly client: ApiClient
  readonly running: RunningScheduler
  stop(): Promise<void>
}

export async function startTestScheduler(
  plane: ControlPlane,
  clock: Clock,
  more: Partial<SchedulerOptions> = {},
): Promise<TestScheduler> {
  const stop = new AbortController()
  const masters = { uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
  const clientAs = (name: string): ApiClient =>
    new ApiClient({ transport: plane.running.server.clientAs({ name, ...masters }), clock, userAgent: `${name}/v1` })
  const running = startScheduler({
    client: clientAs('system:kube-scheduler'),
    clock,
    random: createSeededRandom(1),
    log: errorLog(),
    signal: stop.signal,
    isEnabled: createGates(new Map()),
    host: 'test',
    ...more,
  })
  await running.synced
  const end = async (): Promise<void> => {
    stop.abort()
    await running.ended()
  }
  return { client: clientAs('tester'), running, stop: end, [Symbol.asyncDispose]: end }
}
