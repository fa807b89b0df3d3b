/** Tests kube-proxy while it is repeatedly killed under traffic, and its handling of conntrack entries. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { systemConntrack } from '#proxy/conntrack.ts'

import { type Host, type Network, whyNoNetworks } from './network-bed.ts'
import { createProxyBed, MODES, NODE, type ProxyBed } from './proxy-bed.ts'

const missing = await whyNoNetworks()
if (missing !== undefined) process.stderr.write(`faults of kube-proxy: skipping, ${missing}\n`)
const withoutFlows = missing ?? whyNoConntrack()
if (missing === undefined && withoutFlows !== undefined)
  process.stderr.write(`flows of UDP: skipping, ${withoutFlows}\n`)

/** The number of kills; each needs a start of Node. */
const KILLS = Number(process.env['PROXY_KILLS'] ?? 3)
const PROGRAM = join(import.meta.dirname, 'proxy-process.ts')

function whyNoConntrack(): string | undefined {
  return spawnSync('conntrack', ['--version']).status === 0 ? undefined : 'conntrack is not installed'
}

for (const mode of MODES)
  describe(`kube-proxy that is killed, in mode ${mode}`, { skip: missing ?? false }, () => {
    let bed: ProxyBed
    let network: Network
    let one: Host, two: Host
    let folder = ''
    let kubeconfig = ''

    before(async () => {
      bed = await createProxyBed(mode)
      network = bed.network
      one = await network.add('pod-1', '10.244.1.2')
      two = await network.add('pod-2', '10.244.2.2')
      await Promise.all([one.serve('one', 8080), two.serve('two', 8080)])
      folder = await mkdtemp(join(tmpdir(), 'hyperkube-proxy-'))
      kubeconfig = join(folder, 'kubeconfig')
      await writeFile(kubeconfig, bed.kubeconfig)
    })
    after(async () => {
      await bed[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    })

    /** Starts a process; resolves when its rules are written. */
    async function start(): Promise<ChildProcess> {
      const child = spawn(process.execPath, [PROGRAM, kubeconfig, network.node.namespace.name, mode], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      await once(child.stdout, 'data')
      return child
    }

    test(`keeps connections and Services over ${KILLS} kills`, async () => {
      const { spec } = await bed.service('web', { type: 'NodePort' })
      const ip = spec.clusterIP ?? ''
      await bed.endpoints('web', [{ address: '10.244.1.2', node: NODE }])
      let proxy = await start()
      const held = await two.hold(ip, 80)
      const answers: string[] = []
      for (let count = 0; count < KILLS; count++) {
        const exited = once(proxy, 'exit')
        proxy.kill('SIGKILL')
        await exited
        const [next, asked] = await Promise.all([start(), two.ask('tcp', ip, 80, 20)])
        proxy = next
        answers.push(...asked, await held.ask())
      }
      proxy.kill('SIGKILL')
      assert.deepEqual([...new Set(answers)], ['one 10.244.2.2'])
      assert.equal(answers.length, KILLS * 21)
    })

    test('removes UDP flows to a removed endpoint', { skip: withoutFlows ?? false }, async () => {
      const { spec } = await bed.service('flows')
      const ip = spec.clusterIP ?? ''
      await bed.endpoints('flows', [{ address: '10.244.1.2', node: NODE }])
      const conntrack = systemConntrack(network.node.namespace.within)
      await using _proxy = await bed.proxy({ conntrack })
      const flow = await two.flow(ip, 80)
      await eventually(
        () => flow.ask(),
        (answer) => answer === 'one 10.244.2.2',
      )
      await bed.endpoints('flows', [{ address: '10.244.2.2', node: NODE }])
      await eventually(
        () => flow.ask(),
        (answer) => answer.startsWith('two'),
      )
    })
  })
