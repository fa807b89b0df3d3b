/**
 * Compares all metric families of our kubelet and upstream's, with the same pods, containerd and server: `node
 * test/upstream/kubelet-metrics.ts` as root. Exits with 1 if a family differs, or is missing without a reason.
 */
import { realClock, sleep } from '#lib/clock.ts'

import { IMAGE, whyNoContainerd } from '../integration/kubelet/containerd-bed.ts'
import { compareRows } from './cadvisor-rows.ts'
import { compareFamilies, familiesOf, type FamilyShape, type Missing } from './families.ts'
import { type KubeletBed, type Make, pageOf, startKubeletBed } from './kubelet-bed.ts'

const PAGES = ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes'] as const

const MISSING: Missing = [
  [/^go_/, 'there is no Go run time'],
  [/^(?:aggregator|apiextensions|apiserver|authentication|authorization)_/, 'of the library of API servers'],
  [/^(?:rest_client_(?:exec_plugin|rate_limiter|request_size|response_size|request_retries|transport))/, 'not counted'],
  [/^workqueue_/, 'there are no work queues: each pod has a worker'],
  [/^(?:force_cleaned|reconstruct)_/, 'nothing is reconstructed: after a restart volumes are brought once more'],
  [/^kubelet_cri_losing_support$/, 'no version of the runtime is refused'],
  [/^kubelet_graceful_shutdown_/, 'shown with graceful shutdown only'],
  [/^kubelet_imagemanager_inmemory_/, 'all records are in memory: there is no cache of them'],
  [/^kubelet_lifecycle_handler_http_fallbacks/, 'hooks that want https get https'],
  [/^kubelet_pleg_(?:discard|pod_relist)/, 'all pods are listed at once, and no event waits in a queue'],
  [/^kubelet_pod_watch_events_dropped/, 'there is no such watch'],
  [/^kubelet_restarted_pods/, 'a pod of the same uid is the same pod'],
  [/^kubelet_runtime_operations_errors/, 'shown once something has failed'],
  [/^cadvisor_version_info$/, 'there is no cadvisor'],
  [/^container_cpu_load_(?:d_)?average_10s$|^container_tasks_state$/, "nobody measures it: upstream's says 0 of all"],
  [/^container_health_state$/, 'containers of pods have no health checks of Docker'],
  [/^machine_(?:cpu_books|cpu_drawers|nvm_\w+|dimm_\w+)$/, 'of machines that have such'],
  [/^(?:container|pod)_swap_/, 'shown where the runtime counts it'],
]

async function main(): Promise<number> {
  const fault = await whyNoContainerd()
  if (fault !== undefined) throw new Error(`There can be no containers here: ${fault}`)
  await using closing = new AsyncDisposableStack()
  const bed = await startKubeletBed('compared', closing)
  const mine = await pagesOf(bed, 'sources')
  const reference = await pagesOf(bed, 'upstream')
  let count = 0
  for (const page of PAGES) {
    const [ours, theirs] = [mine.pages.get(page), reference.pages.get(page)]
    if (ours === undefined || theirs === undefined) continue
    const differences = compareFamilies(ours, theirs, MISSING)
    process.stdout.write(
      `${page}: ${ours.size} families here, ${theirs.size} upstream, ${differences.length} differences\n`,
    )
    for (const difference of differences) process.stdout.write(`${difference}\n`)
    count += differences.length
  }
  const rows = compareRows(mine.cadvisor, reference.cadvisor)
  process.stdout.write(`rows of /metrics/cadvisor: ${rows.length} differences\n`)
  for (const row of rows) process.stdout.write(`${row}\n`)
  return count + rows.length === 0 ? 0 : 1
}

interface Seen {
  readonly pages: ReadonlyMap<string, Map<string, FamilyShape>>
  /** As it was written. */
  readonly cadvisor: string
}

async function pagesOf(bed: KubeletBed, make: Make): Promise<Seen> {
  const kubelet = await bed.start(make)
  await exercise(bed)
  // Some count in rounds of ten seconds.
  await sleep(realClock, 15_000)
  const pages = new Map<string, Map<string, FamilyShape>>()
  let cadvisor = ''
  for (const page of PAGES) {
    const text = await pageOf(bed, kubelet, page)
    if (process.env['KEEP'] !== undefined) process.stderr.write(`=== ${make} ${page}\n${text}\n`)
    if (page === '/metrics/cadvisor') cadvisor = text
    pages.set(page, familiesOf(text.replaceAll(/ \d{13}$/gm, '')))
  }
  if (process.env['KEEP'] !== undefined) {
    process.stderr.write(`=== ${make} summary\n${await pageOf(bed, kubelet, '/stats/summary')}\n`)
  }
  for (const name of ['one', 'two']) await bed.ask('DELETE', `${PODS}/${name}?gracePeriodSeconds=0`)
  await kubelet.stop('SIGTERM')
  await bed.ask('DELETE', `/api/v1/nodes/${bed.node}`)
  return { pages, cadvisor }
}

const PODS = '/api/v1/namespaces/default/pods'

/** Something of everything: probes, limits, volumes, a container that ends. */
async function exercise(bed: KubeletBed): Promise<void> {
  const { node: nodeName } = bed
  const probe = { exec: { command: ['true'] }, periodSeconds: 1 }
  const container = { name: 'c', image: IMAGE, imagePullPolicy: 'IfNotPresent', command: ['sleep', '3600'] }
  const resources = { limits: { cpu: '500m', memory: '64Mi' } }
  const volumes = [
    { name: 'e', emptyDir: {} },
    { name: 'm', configMap: { name: 'm' } },
  ]
  await bed
    .ask('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' }, data: { a: 'b' } })
    .catch(() => undefined)
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
  const probes = { livenessProbe: probe, readinessProbe: probe }
  const common = { nodeName, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0 }
  const pods = [
    {
      metadata: { name: 'one' },
      spec: { ...common, volumes, containers: [{ ...container, resources, volumeMounts, ...probes }] },
    },
    {
      metadata: { name: 'two' },
      spec: { ...common, restartPolicy: 'Never', containers: [{ ...container, command: ['true'] }] },
    },
  ]
  for (const pod of pods) await bed.ask('POST', PODS, pod)
  const isDone = async (): Promise<boolean> => {
    const { items } = await bed.ask<{ items: { status: { phase?: string } }[] }>('GET', PODS)
    const phases = items.map(({ status }) => status.phase)
    return phases.length === 2 && phases.includes('Running') && phases.includes('Succeeded')
  }
  for (let waitedMs = 0; !(await isDone()); waitedMs += 200) {
    if (waitedMs > 60_000) throw new Error('The pods do not run')
    await sleep(realClock, 200)
  }
}

process.exitCode = await main()
