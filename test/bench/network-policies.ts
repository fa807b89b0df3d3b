/**
 * Benchmarks network policies: the time from an API request until the kernel has the new rules. `node
 * test/bench/network-policies.ts [pods] [policies]`, as root. It uses an API server in this process, a node in a
 * network namespace, and pods without containers.
 */
import { Namespaces, Nodes, Pods } from '#apis/core/v1.ts'
import { NetworkPolicies } from '#apis/networking/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { listNft } from '#lib/net/nft.ts'
import { secureRandom } from '#lib/random.ts'
import { startEnforcer } from '#network/policies/enforcer.ts'
import { podMap } from '#network/policies/rules.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'

import { createPod, NODE } from '../integration/network/pods.ts'
import { createNamespace } from '../integration/proxy/network-bed.ts'

const [pods = 1000, policies = 50] = process.argv.slice(2).map(Number)
const TABLE = 'hk-bench-policies'
const CHANGES = 100
const MASTERS = { name: 'bench', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

await using plane = await startControlPlane({ settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
await using node = await createNamespace('pol-bench')
const client = new ApiClient({
  transport: plane.running.server.clientAs(MASTERS),
  clock: realClock,
  userAgent: 'bench',
})
const ranges = ['10.64.0.0/16']
await client.create(Nodes, { metadata: { name: NODE }, spec: { podCIDRs: ranges, podCIDR: ranges[0] ?? '' } })
const namespace = 'bench'
await client.create(Namespaces, { metadata: { name: namespace, labels: { team: 'bench' } } })
const addressOf = (number: number): string => `10.64.${number >> 8}.${number & 255}`
for (let number = 0; number < pods; number++)
  await createPod(client, {
    namespace,
    name: `pod-${number}`,
    labels: { app: `app-${number % policies}` },
    web: 80,
    ips: [addressOf(number + 2)],
  })
for (let number = 0; number < policies; number++) {
  const app = (at: number): object => ({ matchLabels: { app: `app-${at % policies}` } })
  const ingress = [
    {
      from: [{ podSelector: app(number + 1) }, { namespaceSelector: {}, podSelector: app(number + 2) }],
      ports: [{ port: 80 }],
    },
  ]
  const spec = { podSelector: app(number), ingress, policyTypes: ['Ingress'] }
  await client.create(NetworkPolicies, { metadata: { namespace, name: `policy-${number}` }, spec })
}

const startMs = realClock.elapsed()
const tools = { clock: realClock, random: secureRandom, log: errorLog() }
const enforcer = startEnforcer({ ...tools, client, node: NODE, table: TABLE, within: node.within })
await enforcer.ready
say('everything, from the first request', [realClock.elapsed() - startMs])

/** Reads an address's element from the kernel. The kernel rejects a read during a change, which is then repeated. */
async function verdictOf(address: string): Promise<string | undefined> {
  const ask = [`get element inet ${TABLE} ${podMap('ingress', 4)} { ${address} }`]
  for (;;)
    try {
      return await listNft(ask, { within: node.within })
    } catch (error) {
      if (!(error as Error).message.includes('Interrupted system call')) throw error
    }
}

const relabelled: number[] = []
for (let number = 0; number < CHANGES; number++) {
  const address = addressOf((number % pods) + 2)
  const before = await verdictOf(address)
  const fromMs = realClock.elapsed()
  const labels = { app: `app-${(number + 7) % policies}` }
  await client.patch(
    Pods,
    { namespace, name: `pod-${number % pods}` },
    { type: 'merge', value: { metadata: { labels } } },
  )
  await eventually(
    () => verdictOf(address),
    (now) => now !== before,
  )
  relabelled.push(realClock.elapsed() - fromMs)
}
say('a pod that other policies select', relabelled)

const isolated: number[] = []
for (let number = 0; number < CHANGES; number++) {
  const address = addressOf(2)
  const before = await verdictOf(address)
  const fromMs = realClock.elapsed()
  const spec = { podSelector: {}, policyTypes: ['Ingress'] }
  if (number % 2 === 0) await client.create(NetworkPolicies, { metadata: { namespace, name: 'deny' }, spec })
  else await client.delete(NetworkPolicies, { namespace, name: 'deny' })
  await eventually(
    () => verdictOf(address),
    (now) => now !== before,
  )
  isolated.push(realClock.elapsed() - fromMs)
}
say('a policy that selects every pod comes or goes', isolated)
await enforcer.stop()

function say(what: string, times: readonly number[]): void {
  const sorted = [...times].sort((one, other) => one - other)
  const at = (part: number): string => `${(sorted[Math.ceil(part * sorted.length) - 1] ?? 0).toFixed(0)} ms`
  process.stdout.write(`${what}: p50 ${at(0.5)}, p99 ${at(0.99)} (${pods} pods, ${policies} policies)\n`)
}
