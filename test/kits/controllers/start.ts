/** Starts the controllers for a test control plane: in its process, on its clock, each with its own identity. */
import { ApiClient, type Transport } from '#client/api-client.ts'
import { createGates } from '#component/flags/gates.ts'
import type { Controller } from '#controllers/controller.ts'
import { type ManagerOptions, runControllers } from '#controllers/manager.ts'
import type { BucketOptions } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { type ControlPlane, errorLog } from '#testing/control-plane.ts'

export interface RunningControllers extends AsyncDisposable {
  /** Has all permissions. */
  readonly client: ApiClient
  stop(): Promise<void>
}

export function startControllers(
  plane: ControlPlane,
  clock: Clock,
  controllers: readonly Controller[],
  {
    gates = {},
    through = (transport) => transport,
    limits,
    ...more
  }: Pick<ManagerOptions, 'settings' | 'readFile' | 'folders'> & {
    readonly log?: Logger
    /** Feature gates that differ from their default. */
    readonly gates?: Readonly<Record<string, boolean>>
    /** Wraps the transport of controllers, to inject faults. */
    readonly through?: (transport: Transport) => Transport
    /** The rate limit of each controller. */
    readonly limits?: BucketOptions
  } = {},
): RunningControllers {
  const stop = new AbortController()
  const masters = { uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }
  const connect = (name: string): { transport: Transport; limits?: BucketOptions } => ({
    transport: through(
      plane.running.server.clientAs({ name: `system:serviceaccount:kube-system:${name}`, ...masters }),
    ),
    ...(limits !== undefined && { limits }),
  })
  const options = {
    controllers,
    clock,
    random: createSeededRandom(1),
    log: errorLog(),
    connect,
    userAgent: 'kube-controller-manager',
    isEnabled: createGates(new Map(Object.entries(gates))),
    ...more,
  }
  const ended = runControllers(options, stop.signal)
  const end = async (): Promise<void> => {
    stop.abort()
    await ended
  }
  return {
    client: new ApiClient({ transport: connect('tester').transport, clock, userAgent: 'tester/v1' }),
    stop: end,
    [Symbol.asyncDispose]: end,
  }
}
