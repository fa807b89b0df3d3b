/**
 * Tests the network links of extra nodes of `up`, as root: a node can reach its own node port through the machine's
 * address.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { ensureNamespace, extraNode, removeNamespace } from '#cluster/machine/node-namespace.ts'
import { containerdPaths } from '#containerd/paths.ts'
import { createIpRoute } from '#lib/net/iproute.ts'
import { ensureBridge } from '#network/bridge.ts'

const isRoot = process.getuid?.() === 0
const hasTools = ['ip', 'nft', 'nsenter'].every(
  (name) => spawnSync('sh', ['-c', 'command -v "$0"', name], { stdio: 'ignore' }).status === 0,
)

const NODE_CIDR = '10.109.77.0/24'
const MACHINE = '10.109.77.1'
const NODE = '10.109.77.2'
const NODE_PORT = 31_555
const PORT = 18_555

/** A server in the namespace of a node, and one request to it through the machine's address. */
const SERVER = `require('node:http').createServer((_, response) => response.end('reached')).listen(${PORT}, '${NODE}', () => console.log('listens'))`
const CLIENT = `fetch('http://${MACHINE}:${NODE_PORT}/', { signal: AbortSignal.timeout(5000) }).then((answer) => answer.text()).then(console.log)`

describe('network link of an extra node', { skip: isRoot && hasTools ? false : 'only root may make links' }, () => {
  it('carries traffic of the node to itself through a node port of the machine', async () => {
    await using closing = new AsyncDisposableStack()
    const dataDir = await mkdtemp(join(tmpdir(), 'node-links-'))
    closing.defer(() => rm(dataDir, { recursive: true }))
    const { nodeBridge, network } = containerdPaths(dataDir)
    const ip = createIpRoute()
    await ensureBridge(ip, { name: nodeBridge, addresses: [`${MACHINE}/24`] })
    closing.defer(() => ip.ip([['link', 'delete', 'dev', nodeBridge]]))
    const place = extraNode(dataDir, 2)
    closing.defer(() => rm(place.places.stateFolder, { recursive: true, force: true }))
    closing.defer(() => removeNamespace(place))
    await ensureNamespace(place, { nodeBridge, nodeCidr: NODE_CIDR })
    const table = `${network}-links`
    const rules = [
      `add table ip ${table}`,
      `add chain ip ${table} pre { type nat hook prerouting priority -100; }`,
      `add rule ip ${table} pre ip daddr ${MACHINE} tcp dport ${NODE_PORT} dnat to ${NODE}:${PORT}`,
      `add chain ip ${table} post { type nat hook postrouting priority 100; }`,
      `add rule ip ${table} post ip saddr ${NODE} ip daddr ${NODE} masquerade`,
    ]
    execFileSync('nft', ['-f', '-'], { input: rules.join('\n') })
    closing.defer(() => void execFileSync('nft', ['delete', 'table', 'ip', table]))
    const [first = '', ...rest] = place.within
    const server = spawn(first, [...rest, process.execPath, '-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] })
    closing.defer(async () => {
      const exited = once(server, 'exit')
      server.kill()
      await exited
    })
    await once(server.stdout, 'data')
    const { stdout, stderr } = spawnSync(first, [...rest, process.execPath, '-e', CLIENT], { encoding: 'utf8' })
    assert.equal(stdout, 'reached\n', stderr)
  })
})
