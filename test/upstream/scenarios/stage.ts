/**
 * Starts the environment of replayed scenarios: our API server and controllers in this process, with virtual nodes and
 * a virtual clock.
 */
import { readFile } from 'node:fs/promises'
import { PassThrough } from 'node:stream'

import { chosenControllers, startInProcessControllers } from '#cluster/controllers.ts'
import { serverSettings } from '#cluster/settings.ts'
import { createGates } from '#component/flags/gates.ts'
import { startApiServer } from '#control-plane/start.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { processPki } from '#testing/process-pki.ts'

import { startVirtualNodesWith, type VirtualNodes } from '../virtual-nodes.ts'
import { CONTROLLERS, NODES_PLAN, QUICK, SERVICE_RANGES } from './play.ts'

/** Near the time of the recordings: what CronJobs missed depends on the year. */
const START_MS = Date.UTC(2026, 10, 18, 12)
const STEP_MS = 50
const GRACE_MS = 1000
/** Scenarios cause errors on purpose. */
const NOWHERE = { write: (_text: string, done: () => void) => done() }
/** As the administrator's certificate names it. */
const ADMIN = {
  name: 'kubernetes-admin',
  uid: '',
  groups: ['system:masters', 'system:authenticated'],
  extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=0'] },
}

export interface Stage extends AsyncDisposable {
  readonly nodes: VirtualNodes
  /** Lets virtual time pass until the work is done. */
  during<T>(work: Promise<T>): Promise<T>
}

export async function openStage(): Promise<Stage> {
  const clock = createVirtualClock(START_MS)
  const closing = new AsyncDisposableStack()
  const nodes = await passTime(clock, start(clock, closing))
  return {
    nodes,
    during: (work) => passTime(clock, work),
    [Symbol.asyncDispose]: () => passTime(clock, closing.disposeAsync()),
  }
}

async function start(clock: VirtualClock, closing: AsyncDisposableStack): Promise<VirtualNodes> {
  const { files } = await processPki()
  const file = (name: string): string => name
  const around = {
    clock,
    random: createSeededRandom(1),
    log: createLog({ stream: NOWHERE, clock }).logger,
    cwd: process.cwd(),
    stdout: new PassThrough().resume(),
    readFile: async (path: string) => files.get(path) ?? (await readFile(path, 'utf8')),
    graceMs: GRACE_MS,
  }
  const own = {
    datastore: 'memory',
    'bind-address': '127.0.0.1',
    'secure-port': 0,
    'endpoint-reconciler-type': 'none',
    'service-cluster-ip-range': SERVICE_RANGES,
  }
  const running = await startApiServer(serverSettings(file, own), around, closing)
  const settings = controllerSettings({
    'root-ca-file': file('ca.crt'),
    'service-account-private-key-file': file('sa.key'),
    'cluster-signing-cert-file': file('ca.crt'),
    'cluster-signing-key-file': file('ca.key'),
    ...QUICK,
  })
  const isEnabled = createGates(new Map())
  const controllers = chosenControllers(CONTROLLERS, { ...around, isEnabled })
  startInProcessControllers(running, { ...around, controllers, settings, isEnabled }, closing)
  const connection = { transport: running.server.clientAs(ADMIN) }
  const nodes = await startVirtualNodesWith(NODES_PLAN, { ...around, connection })
  closing.defer(() => nodes.stop())
  return nodes
}

async function passTime<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const seen = { isOver: false }
  const over = (): void => void (seen.isOver = true)
  work.then(over, over)
  for (let stepMs = 0; !seen.isOver; stepMs = STEP_MS) await clock.advance(stepMs)
  return work
}
