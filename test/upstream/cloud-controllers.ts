/**
 * Compares our cloud-controller-manager with upstream's: `node test/upstream/cloud-controllers.ts`. Each has a cluster
 * and a cloud that this script simulates (`cloud/`). Both get the same events. After each step the script compares
 * nodes, Services, events and the cloud. Exits with 1 on an unexplained difference. Needs Go to build upstream's with a
 * provider that calls the script, once.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'

import { Events, type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { connect } from '#client/connection/connect.ts'
import { realClock, sleep } from '#lib/clock.ts'

import { CASES, type CloudCase, type Side } from './cloud/cases.ts'
import { PretendCloud } from './cloud/pretend-cloud.ts'
import { ownGoProgram } from './go-program.ts'
import { end, launch } from './kube-apiserver.ts'
import { differences } from './line-differences.ts'
import { HYPERKUBE, startOurs, writeKubeconfig } from './ours.ts'
import { UPSTREAM_VERSION } from './programs.ts'
import { Shown, untilSo } from './shown.ts'

const STAGING = UPSTREAM_VERSION.replace('v1.', 'v0.')
const NEEDS = Object.fromEntries(
  ['api', 'apimachinery', 'cloud-provider', 'component-base'].map((name) => [`k8s.io/${name}`, STAGING]),
) as Record<string, string>
const LIMIT_SECONDS = 60
/** Events come a moment later than what they tell of; and where nothing is to happen, this is how long it does not. */
const QUIET_MS = 3000

interface RunningSide extends Side, AsyncDisposable {
  readonly name: string
}

async function startSide(name: string, program: readonly string[], provider: string): Promise<RunningSide> {
  await using starting = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-cloud-'))
  starting.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await startOurs(folder)
  starting.defer(() => server.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const { client } = starting.use(await connect({ kubeconfig, userAgent: 'test' }))
  const cloud = starting.use(new PretendCloud())
  const config = join(folder, 'cloud.conf')
  await writeFile(config, await cloud.open())
  const flags = [
    `--cloud-provider=${provider}`,
    `--cloud-config=${config}`,
    ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map((flag) => `--${flag}=${kubeconfig}`),
    '--leader-elect=false',
    '--secure-port=0',
    '--allocate-node-cidrs',
    '--cluster-cidr=10.244.0.0/16',
    '--node-monitor-period=1s',
    '--node-status-update-frequency=1s',
    '--route-reconciliation-period=1s',
  ]
  const [file = '', ...args] = program
  const log = process.env['CLOUD_LOGS'] ?? folder
  const manager = await launch(file, [...args, ...flags], join(log, `${name}.log`))
  starting.defer(() => end(manager, 'SIGKILL'))
  const started = starting.move()
  return { name, client, cloud, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

/** The visible state, one line for each object. Ids differ between the sides. */
async function picture({ client, cloud }: Side): Promise<string[]> {
  const [nodes, services, events] = await Promise.all([client.list(Nodes), client.list(Services), client.list(Events)])
  const lines = [
    ...nodes.items.map((node) => `node ${node.metadata.name} ${JSON.stringify(nodeFacts(node))}`),
    ...services.items.map((service) => `service ${service.metadata.name} ${JSON.stringify(serviceFacts(service))}`),
    ...[...cloud.routes].map(([route, { addresses }]) => `route ${route} ${JSON.stringify(addresses)}`),
    // Whether a node has its addresses when its first route is made is chance.
    ...cloud.deeds.filter((deed) => !deed.includes('route')).map((deed) => `deed ${deed}`),
    ...events.items.map(({ source, type, reason, involvedObject: { kind, name }, message = '' }) => {
      const text = message.replace(/ after [\d.µmns]+:/, ' after a while:')
      return `event ${source?.component} ${type} ${reason} ${kind}/${name} ${text}`
    }),
  ]
  const ids = [...nodes.items, ...services.items].map(({ metadata: { uid = '', name } }) => [uid, `<${name}>`] as const)
  const named = lines.map((line) => ids.reduce((text, [uid, name]) => text.replaceAll(uid, name), line))
  return [...new Set(named)].sort()
}

function nodeFacts({ metadata: { labels }, spec: { taints = [], providerID }, status }: Node): object {
  const network = status?.conditions?.find(({ type }) => type === 'NetworkUnavailable')
  return {
    labels: Object.entries(labels ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .sort(),
    taints: taints.map(({ key, effect }) => `${key}:${effect}`).sort(),
    providerID,
    addresses: status?.addresses,
    network: network && [network.status, network.reason, network.message],
  }
}

const serviceFacts = ({ metadata: { finalizers }, status }: Service): object => ({
  finalizers,
  status: status?.loadBalancer,
})

/** Until it is so on this side, and nothing more happens. */
async function settle({ isDone }: CloudCase, side: RunningSide): Promise<string[]> {
  if (isDone !== undefined)
    await untilSo(
      async () => isDone(side),
      (so) => so,
      LIMIT_SECONDS,
    ).catch((error: unknown) => {
      throw new Error(`${side.name}: ${(error as Error).message}`, { cause: error })
    })
  let seen = await picture(side)
  for (;;) {
    await sleep(realClock, QUIET_MS)
    const now = await picture(side)
    if (now.join('\n') === seen.join('\n')) return now
    seen = now
  }
}

async function main(): Promise<number> {
  const upstream = ownGoProgram('cloud', join(import.meta.dirname, 'cloud', 'main.go'), NEEDS)
  await using theirs = await startSide('upstream', [upstream], 'pretend')
  const module = join(import.meta.dirname, 'cloud', 'provider.ts')
  await using ours = await startSide('hyperkube', [HYPERKUBE, 'cloud-controller-manager'], module)
  const shown = new Shown()
  for (const one of CASES)
    await shown.step(one.name, async () => {
      const pictures = await Promise.all(
        [theirs, ours].map(async (side) => {
          side.cloud.deeds.length = 0
          await one.act(side)
          return await settle(one, side)
        }),
      )
      const [wanted = [], seen = []] = pictures
      const wrong = differences(wanted.join('\n'), seen.join('\n'))
      if (wrong.length > 0) throw new Error(`\n    ${wrong.join('\n    ')}`)
      return `${seen.length} facts alike`
    })
  return shown.end()
}

process.exitCode = await main()
