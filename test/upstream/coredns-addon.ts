/**
 * Tests cluster DNS on two nodes: `node test/upstream/coredns-addon.ts`, as root, with containers. First our DNS server
 * forwards a stub domain to a CoreDNS (`--stub-domains`). Then CoreDNS runs as pods behind Service `kube-dns` and
 * replaces ours, and back. Pods of both nodes resolve names. Exits with 0 only if all steps passed, and leaves nothing.
 * Needs Go for CoreDNS.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { makeArchive } from '../images/main.ts'
import { COREDNS_IMAGE, corednsAddon } from './coredns-objects.ts'
import { buildCoreDns } from './go-program.ts'
import { end } from './kube-apiserver.ts'
import { type NamespacedCluster, say, startNamespacedCluster } from './namespaced-cluster.ts'
import { mustBe, Shown, untilSo } from './shown.ts'
import { podsOf, webOf } from './three-nodes-objects.ts'

const shown = new Shown()
const DOMAIN = 'corp.example'
const HEADLESS = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } }
const HEADLESS_SPEC = {
  clusterIP: 'None',
  selector: { app: 'web' },
  ports: [{ name: 'http', port: 80, targetPort: 8080 }],
}

/** A server that knows one domain, until the cluster goes. */
async function serveDomain(cluster: NamespacedCluster): Promise<{ address: string; server: ChildProcess }> {
  const corefile = join(cluster.folder, 'Corefile')
  await writeFile(corefile, `${DOMAIN}:53 {\n  hosts {\n    192.0.2.80 db.${DOMAIN}\n    fallthrough\n  }\n  log\n}\n`)
  const { name } = cluster.neighbour
  const said = await cluster.neighbour.run('ip', '-json', '-4', 'address', 'show', 'dev', 'eth0')
  const [link] = JSON.parse(said) as [{ addr_info: [{ local: string }] }]
  const server = spawn('nsenter', [`--net=/run/netns/${name}`, buildCoreDns(), '-conf', corefile], { stdio: 'ignore' })
  return { address: link.addr_info[0].local, server }
}

const dig = async (cluster: NamespacedCluster, pod: string, ...question: readonly string[]): Promise<string> =>
  ((await cluster.exec(pod, 'dig', '+short', '+search', '+time=5', '+tries=3', ...question)) ?? 'no answer').trim()

async function pods(cluster: NamespacedCluster): Promise<readonly { name: string; ip: string }[]> {
  const ready = '{.status.numberReady}'
  const wanted = String(cluster.nodes.length)
  const told = (): Promise<string> => cluster.kubectl('get', 'daemonset', 'web', `--output=jsonpath=${ready}`)
  await untilSo(told, (text) => text === wanted, 180)
  return podsOf(await cluster.kubectl('get', 'pods', '--selector=app=web', '--output=json'))
}

/** Sends the same queries from every node. */
async function askEverything(cluster: NamespacedCluster): Promise<string> {
  const all = await pods(cluster)
  const kubernetes = await cluster.kubectl('get', 'service', 'kubernetes', '--output=jsonpath={.spec.clusterIP}')
  const addresses = all
    .map(({ ip }) => ip)
    .sort()
    .join('\n')
  let asked = 0
  for (const { name } of all)
    for (const [question, wanted] of [
      [['kubernetes.default.svc.cluster.local'], kubernetes],
      [['kubernetes.default'], kubernetes],
      [['+tcp', 'kubernetes.default.svc.cluster.local'], kubernetes],
      [['web.default.svc.cluster.local'], addresses],
      [['-x', kubernetes], 'kubernetes.default.svc.cluster.local.'],
      [['nobody.default.svc.cluster.local'], ''],
    ] as const) {
      await untilSo(
        async () => (await dig(cluster, name, ...question)).split('\n').sort().join('\n'),
        (said) => said === wanted,
        120,
      )
      asked++
    }
  const srv = await dig(cluster, all[0]?.name ?? '', 'SRV', '_http._tcp.web.default.svc.cluster.local')
  mustBe(srv.split('\n').length === all.length && srv.includes(' 8080 '), srv)
  return `${asked} questions of ${all.length} pods, and SRV`
}

async function slicesOf(cluster: NamespacedCluster): Promise<string> {
  const facts = '{range .items[*]}{.metadata.name}={.endpoints[*].addresses[0]} {end}'
  const selector = '--selector=kubernetes.io/service-name=kube-dns'
  const said = await cluster.kubectl('get', 'endpointslices', '-n=kube-system', selector, `--output=jsonpath=${facts}`)
  return said.trim()
}

async function tryOwn(cluster: NamespacedCluster, closing: AsyncDisposableStack): Promise<void> {
  await cluster.apply(webOf(), { ...HEADLESS, spec: HEADLESS_SPEC })
  await shown.step('our name server answers pods of both nodes', () => askEverything(cluster))
  const { address, server } = await serveDomain(cluster)
  closing.defer(() => end(server, 'SIGKILL'))
  const [pod] = await pods(cluster)
  await shown.step(`without --stub-domains nobody knows ${DOMAIN}`, async () => {
    const said = await dig(cluster, pod?.name ?? '', `db.${DOMAIN}`)
    mustBe(!said.includes('192.0.2.80'), said)
    return said === '' ? 'no such name' : said
  })
  await shown.step(`--stub-domains=${DOMAIN}=${address}: its names are that server's`, async () => {
    await cluster.restart(undefined, [`--stub-domains=${DOMAIN}=${address}`])
    const all = await pods(cluster)
    for (const { name } of all)
      for (const way of ['+notcp', '+tcp'])
        await untilSo(
          () => dig(cluster, name, way, `db.${DOMAIN}`),
          (said) => said === '192.0.2.80',
          60,
        )
    mustBe((await dig(cluster, all[0]?.name ?? '', `none.${DOMAIN}`)) === '', 'a name that is not there is answered')
    return `db.${DOMAIN} is 192.0.2.80 for ${all.length} pods, by UDP and TCP`
  })
  await shown.step('and names of the cluster are still ours', () => askEverything(cluster))
}

async function tryAddon(cluster: NamespacedCluster): Promise<void> {
  const layers = { coredns: () => [{ path: 'coredns', from: buildCoreDns(), mode: 0o755 }] }
  const config = { Entrypoint: ['/coredns'], WorkingDir: '/' }
  const recipe = { images: [{ names: [COREDNS_IMAGE], layers: ['coredns'], config }], layers }
  await cluster.load(await makeArchive(recipe, join(cluster.folder, 'coredns.tar'), say))
  const before = await slicesOf(cluster)
  await shown.step('CoreDNS is installed as its addon is, and ours is withdrawn', async () => {
    mustBe(before.startsWith('kube-dns-hyperkube='), before)
    await cluster.apply(...corednsAddon(cluster.nodes.length))
    await cluster.kubectl('rollout', 'status', '-n=kube-system', 'deployment/coredns', '--timeout=180s')
    await untilSo(
      () => slicesOf(cluster),
      (now) => !now.includes('hyperkube') && now.split(/[= ]/).length === cluster.nodes.length + 1,
    )
    return `endpoints of kube-dns: ${before} before, ${await slicesOf(cluster)} now`
  })
  await shown.step('CoreDNS answers pods of both nodes', () => askEverything(cluster))
  await shown.step('it is CoreDNS that was asked', async () => {
    const logs = await cluster.kubectl('logs', '-n=kube-system', '--selector=k8s-app=kube-dns', '--tail=-1')
    const lines = logs.split('\n').filter((line) => line.includes('A IN web.default.svc.cluster.local.'))
    mustBe(lines.length > 0, 'nothing in its log')
    return `${lines.length} lines of its log are of our questions`
  })
}

async function tryReturn(cluster: NamespacedCluster): Promise<void> {
  await shown.step('both start anew: CoreDNS stays, and knows names that came since', async () => {
    await cluster.restart()
    const spec = { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] }
    await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'later' }, spec })
    const ip = await cluster.kubectl('get', 'service', 'later', '--output=jsonpath={.spec.clusterIP}')
    for (const { name } of await pods(cluster))
      await untilSo(
        () => dig(cluster, name, 'later.default'),
        (said) => said === ip,
        120,
      )
    mustBe(!(await slicesOf(cluster)).includes('hyperkube'), await slicesOf(cluster))
    return await slicesOf(cluster)
  })
  await shown.step('without it ours is back', async () => {
    await cluster.kubectl('delete', 'deployment', 'coredns', '-n=kube-system')
    // Endpoints of a Service that loses its selector stay as they are then.
    await untilSo(
      () => slicesOf(cluster),
      (now) => now.endsWith('='),
    )
    const none = JSON.stringify({ spec: { selector: null } })
    await cluster.kubectl('patch', 'service', 'kube-dns', '-n=kube-system', '--type=merge', `--patch=${none}`)
    await untilSo(
      () => slicesOf(cluster),
      (now) => now.includes('kube-dns-hyperkube='),
    )
    return await askEverything(cluster)
  })
}

async function main(): Promise<void> {
  await using cluster = await startNamespacedCluster({ many: 2 })
  await using closing = new AsyncDisposableStack()
  await tryOwn(cluster, closing)
  await tryAddon(cluster)
  await tryReturn(cluster)
}

await shown.step('all of it', async () => {
  await main()
  return ''
})
process.exitCode = shown.end()
