/**
 * Compares the metric families of our API server and upstream's after the same requests: `node test/upstream/metrics.ts
 * [--ours-twice]`. Common families must have the same type and labels; families that only upstream has must be listed
 * with a reason. Health checks are compared by name and order. Exits with 1 on a difference.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { compareFamilies, familiesOf, type Missing } from './families.ts'
import { type AdminTls, startOwn } from './kube-apiserver.ts'
import { startReference } from './reference.ts'

interface Target {
  readonly port: number
  readonly tls: AdminTls
  stop(): Promise<void>
}

const MISSING: Missing = [
  [/^go_/, 'there is no Go run time'],
  [
    /^(?:aggregator_openapi|apiextensions)_/,
    'OpenAPI documents are built on request, and changes of definitions are found during their validation',
  ],
  [/^apiserver_kube_aggregator_/, 'certificates without names or with SHA-1 are refused'],
  [/^apiserver_webhooks_/, 'certificates without names or with SHA-1 are refused'],
  [/^apiserver_admission_step_admission_duration_seconds_summary$/, 'the histogram contains the same data'],
  [/^aggregator_discovery_(?:nopeer|peer)/, 'discovery is not merged with that of peers'],
  [/^apiserver_flowcontrol_epoch_advance_total$/, 'the progress of queues does not overflow'],
  [
    /^apiserver_(?:envelope_encryption|storage_(?:data_key|envelope|transformation)|encryption_config)/,
    'KMS v1, which has these caches and keys, is not supported; work of the other providers is not counted yet',
  ],
  [/^apiserver_(?:egress_dialer|externaljwt|peer_|rerouted)/, 'neither egress selectors, external signers nor peers'],
  [/^apiserver_(?:authentication|authorization)_config_controller|^apiserver_authentication_jwt/, 'not counted yet'],
  [/^apiserver_cache_list_(?:fetched|returned)/, 'most lists consist of cached bytes, whose objects are not counted'],
  [/^apiserver_storage_list/, 'lists come from the watch cache; only older states are read from the store'],
  [/^apiserver_(?:storage_decode|terminated_watchers)/, 'not counted yet'],
  [/^watch_cache_capacity/, 'the history of the watch cache is limited by time, not by a number for each kind'],
  [/^etcd_(?:bookmark|lease)/, 'leases belong to the store, which shares them among keys'],
  [/^apiserver_clusterip_repair/, 'events report repairs of addresses'],
  [
    /^apiserver_(?:request_timestamp|request_post_timeout|request_aborts|selfrequest)/,
    'a series exists only after its first event',
  ],
  [
    /^apiserver_(?:validation_declarative|validation_duplicate|delegated_auth)/,
    'there is one implementation of validation, and no delegation to another server',
  ],
  [/^authentication_token_cache/, 'tokens are checked by signature each time'],
  [/^node_authorizer_graph/, 'not counted yet'],
  [
    /^(?:rest_client|workqueue|leader_election|informer|reflector|running_managed|controller_)/,
    'the server has no client connection to itself',
  ],
  [/^(?:grpc_client|etcd_version|promhttp|scrape_|hidden_|disabled_)/, 'these belong to a Go library'],
]

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'metrics-'))
  const [oursFolder, theirsFolder] = [join(folder, 'ours'), join(folder, 'theirs')]
  for (const one of [oursFolder, theirsFolder]) await mkdir(one)
  const ours = await startOwn(oursFolder)
  const theirs: Target = process.argv.includes('--ours-twice') ? ours : await startReference(theirsFolder)
  try {
    for (const target of new Set([ours, theirs])) await exercise(target)
    const [mine, reference] = [familiesOf(await get(ours, '/metrics')), familiesOf(await get(theirs, '/metrics'))]
    const differences = compareFamilies(mine, reference, MISSING)
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const [own, upstream] = [await get(ours, `${path}?verbose`), await get(theirs, `${path}?verbose`)]
      if (own !== upstream) differences.push(`${path}?verbose:\n--- ours\n${own}\n--- upstream's\n${upstream}`)
    }
    say(`${mine.size} metric families of ours, ${reference.size} of upstream, ${differences.length} differences`)
    for (const difference of differences) say(difference)
    return differences.length === 0 ? 0 : 1
  } finally {
    for (const target of new Set([ours, theirs])) await target.stop()
    await rm(folder, { recursive: true })
  }
}

/** Sends one request of each kind, so that families with labels have series. */
async function exercise(target: Target): Promise<void> {
  const maps = '/api/v1/namespaces/default/configmaps'
  const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'seen' } }
  await send(target, { method: 'POST', path: maps, body: map })
  await send(target, { method: 'POST', path: `${maps}?dryRun=All`, body: { ...map, metadata: { name: 'unseen' } } })
  await send(target, { method: 'PUT', path: `${maps}/seen`, body: { ...map, data: { a: 'b' } } })
  const watch = `${maps}?watch=1&timeoutSeconds=1`
  const watchList = `${watch}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`
  for (const path of [`${maps}/seen`, maps, watch, watchList, '/api/v1/pods', '/healthz', '/apis']) {
    await get(target, path)
  }
  await send(target, { method: 'DELETE', path: `${maps}/seen` })
}

interface Sent {
  readonly method: string
  readonly path: string
  readonly body?: object
}

function get(target: Target, path: string): Promise<string> {
  return send(target, { method: 'GET', path })
}

function send({ port, tls }: Target, { method, path, body }: Sent): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { accept: '*/*', ...(body && { 'content-type': 'application/json' }) }
    const asking = request({ host: '127.0.0.1', port, path, method, headers, agent: false, ...tls }, (answer) => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('end', () => resolve(Buffer.concat(pieces).toString()))
    })
    asking.on('error', reject)
    asking.end(body && JSON.stringify(body))
  })
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

process.exitCode = await main()
