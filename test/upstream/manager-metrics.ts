/**
 * Compares the metric families of our controller manager and upstream's, each on our server with the same objects:
 * `node test/upstream/manager-metrics.ts`. Exits with 1 if a family differs, or is missing without a reason.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { type Make, startManager } from './components.ts'
import { compareFamilies, familiesOf, type FamilyShape, type Missing } from './families.ts'
import { end, freePort } from './kube-apiserver.ts'
import { metricsPage } from './metrics-page.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'

const MISSING: Missing = [
  [/^go_/, 'there is no Go run time'],
  [/^process_(?:network|virtual_memory)/, 'not told by the platform'],
  [/^(?:aggregator|apiextensions|apiserver)_/, 'of the library of API servers, which counts nothing in a manager'],
  [/^informer_/, 'events are handled when they come: nothing is queued'],
  [/_stale_sync_skips_total$/, 'writes are in the cache before the next look'],
  [/^rest_client_(?:exec_plugin|rate_limiter|request_size|response_size|transport)/, 'not counted yet'],
]

async function main(): Promise<number> {
  const mine = await familiesBeside('ours')
  const reference = await familiesBeside("upstream's")
  const differences = compareFamilies(mine, reference, MISSING)
  process.stdout.write(
    `${mine.size} metric families of ours, ${reference.size} of upstream, ${differences.length} differences\n`,
  )
  for (const difference of differences) process.stdout.write(`${difference}\n`)
  return differences.length === 0 ? 0 : 1
}

async function familiesBeside(make: Make): Promise<Map<string, FamilyShape>> {
  const folder = await mkdtemp(join(tmpdir(), 'manager-metrics-'))
  await using running = new AsyncDisposableStack()
  running.defer(() => rm(folder, { recursive: true, force: true }))
  const server = await startOurs(folder)
  running.defer(() => server.stop())
  const port = await freePort()
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  const flags = [
    `--secure-port=${port}`,
    '--bind-address=127.0.0.1',
    `--cert-dir=${folder}`,
    '--authorization-always-allow-paths=/metrics',
  ]
  const manager = await startManager(folder, kubeconfig, { make, flags })
  running.defer(() => end(manager, 'SIGTERM'))
  const account = '/api/v1/namespaces/default/serviceaccounts/default'
  while ((await ask(server, { path: account })).status !== 200) await sleep(realClock, 100)
  await exercise(server)
  // Some count in rounds of five seconds.
  await sleep(realClock, 6000)
  return familiesOf(await metricsPage(port))
}

/** Something for many controllers. */
async function exercise(server: Server): Promise<void> {
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
  const once = { ...template, spec: { ...template.spec, restartPolicy: 'Never' } }
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
  const objects: readonly (readonly [path: string, spec: object])[] = [
    ['/apis/apps/v1/namespaces/default/deployments', { selector: { matchLabels: { app: 'a' } }, template }],
    ['/apis/batch/v1/namespaces/default/jobs', { template: once }],
    [
      '/apis/batch/v1/namespaces/default/cronjobs',
      { schedule: '* * * * *', jobTemplate: { spec: { template: once } } },
    ],
    ['/api/v1/namespaces/default/services', { selector: { app: 'a' }, ports: [{ port: 80 }] }],
    ['/api/v1/namespaces/default/persistentvolumeclaims', claim],
    ['/api/v1/nodes', {}],
  ]
  for (const [path, spec] of objects)
    await ask(server, { method: 'POST', path, body: { metadata: { name: 'one' }, spec } })
}

process.exitCode = await main()
