/** Tests registration of machines at the management server: tokens, credentials, roles, plans, and hostile requests. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Secrets } from '#apis/core/v1.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { type Machine, Machines } from '#management/kinds/machine.ts'
import { RegistrationTokens } from '#management/kinds/registration-token.ts'
import { MANAGEMENT_NAMESPACE } from '#management/objects.ts'
import { planAnswer } from '#supervisor/agent/server.ts'

import { type Answer, eventually, type ManagementBed, newCredential, startManagementBed } from './bed.ts'
import { importCluster } from './downstream.ts'
import {
  claim,
  claimHeaders,
  claimStatus,
  isConnected,
  machineNamed,
  machineToken,
  openTunnel,
  registration,
} from './machine-bed.ts'

describe('registration of machines at the management server', () => {
  let bed: ManagementBed
  let [cluster, other, clusterToken] = ['', '', '']
  let count = 0

  before(async () => {
    bed = await startManagementBed()
    const made = await importCluster(bed, 'shop')
    ;[cluster, clusterToken] = [made.id, made.token]
    other = (await importCluster(bed, 'other')).id
  })
  after(() => bed[Symbol.asyncDispose]())

  const nextNode = (): string => `node-${++count}`

  async function register(
    node: string,
    body: object = {},
  ): Promise<{ credential: string; token: string; machine: Machine }> {
    const token = await machineToken(bed, cluster, body)
    const credential = newCredential()
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential }), 101)
    return { credential, token, machine: machineNamed(bed, cluster, node) as Machine }
  }

  const machinesPath = (): string => `/v3/clusters/${cluster}/machines`
  const remove = (machine: Machine): Promise<Answer> =>
    bed.request('DELETE', `${machinesPath()}/${machine.metadata.name}`, { token: bed.administrator })
  const askForPlan = (node: string, credential: string): Promise<Answer> =>
    bed.request('GET', '/v3/connect/config', { headers: claimHeaders({ node, credential }) })

  it('stores only the hash of the credential, and does not return it to clients', async () => {
    const node = nextNode()
    const { credential, machine } = await register(node)
    assert.match(machine.spec.credentialHash, /^[0-9a-f]{64}$/)
    assert.ok(!JSON.stringify(machine).includes(credential))
    const list = await bed.request('GET', machinesPath(), { token: bed.administrator })
    assert.equal(list.body['items'].length, 1)
    assert.ok(!list.text.includes(machine.spec.credentialHash))
    assert.equal(list.body['items'][0].spec.internalAddress, '10.0.0.7')
    assert.equal(machine.metadata.ownerReferences?.[0]?.name, cluster)
  })

  it('returns install commands with the URL of the server, its CA checksum and the roles', async () => {
    const body = {
      roles: ['etcd', 'controlplane'],
      nodeName: 'cp-1',
      internalAddress: '10.0.0.1',
      labels: { zone: 'a' },
      taints: ['dedicated=x:NoSchedule'],
    }
    const { command, windowsCommand } = await registration(bed, cluster, body)
    const [, checksum = ''] = /--ca-checksum=(\w+)/.exec(String(command)) ?? []
    assert.match(checksum, /^[0-9a-f]{64}$/)
    assert.match(String(command), /^sudo hyperkube node install --server=https:\S+ --token=\S+ /)
    const rest = String(command).slice(String(command).indexOf(checksum) + checksum.length)
    assert.equal(
      rest,
      ' --node-name=cp-1 --internal-address=10.0.0.1 --etcd --controlplane --label=zone=a --taint=dedicated=x:NoSchedule',
    )
    assert.equal(windowsCommand, undefined)
    assert.match(
      String((await registration(bed, cluster))['windowsCommand']),
      /^hyperkube\.cmd node agent .* --worker$/,
    )
  })

  const BAD_BODIES: Readonly<Record<string, object>> = {
    'no role': { roles: [] },
    'an unknown role': { roles: ['admin'] },
    'a duplicate role': { roles: ['worker', 'worker'] },
    'a token for more than 1000 uses': { uses: 1001 },
    'a token for zero uses': { uses: 0 },
    'a token valid for a year': { validHours: 8760 },
    'a space in the node name': { nodeName: 'a b' },
    'a shell command in the address': { address: '$(reboot)' },
    'a label with a quote': { labels: { zone: "a'b" } },
    'a taint without effect': { taints: ['x=y'] },
    'an unknown field': { cluster: 'local' },
  }
  for (const [what, body] of Object.entries(BAD_BODIES))
    it(`refuses to create a registration command with ${what}`, async () => {
      const answer = await bed.request('POST', `${machinesPath()}/registration`, { token: bed.administrator, body })
      assert.equal(answer.status, 400, answer.text)
    })

  it('refuses registration commands for the local cluster', async () => {
    const path = '/v3/clusters/local/machines/registration'
    assert.equal((await bed.request('POST', path, { token: bed.administrator, body: {} })).status, 400)
  })

  it('refuses a used token, except from the machine that registered with it', async () => {
    const [node, thief] = [nextNode(), nextNode()]
    const { credential, token } = await register(node)
    assert.equal(await claimStatus(bed, { mode: 'register', node: thief, token, credential: newCredential() }), 401)
    assert.equal(machineNamed(bed, cluster, thief), undefined)
    // The answer to the first registration may have been lost.
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential }), 101)
    assert.equal(await claimStatus(bed, { node, credential }), 101)
  })

  it('registers one machine if eight use a single-use token at the same time', async () => {
    const token = await machineToken(bed, cluster)
    const nodes = Array.from({ length: 8 }, nextNode)
    const found = await Promise.all(
      nodes.map((node) => claimStatus(bed, { mode: 'register', node, token, credential: newCredential() })),
    )
    assert.deepEqual(
      found.toSorted((one, next) => one - next),
      [101, ...Array.from({ length: 7 }, () => 401)],
    )
    assert.equal(nodes.filter((node) => machineNamed(bed, cluster, node) !== undefined).length, 1)
  })

  it('refuses an expired token', async () => {
    const { credential: _, token, machine } = await register(nextNode(), { uses: 5 })
    await bed.running.objects.change(RegistrationTokens, machine.spec.registeredBy ?? '', (now) => ({
      ...now,
      spec: { ...now.spec, expiresAt: new Date(0).toISOString() },
    }))
    assert.equal(
      await claimStatus(bed, { mode: 'register', node: nextNode(), token, credential: newCredential() }),
      401,
    )
  })

  it('refuses tokens of clusters for machines, and tokens of machines for clusters', async () => {
    const node = nextNode()
    const credential = newCredential()
    assert.equal(await claimStatus(bed, { mode: 'register', node, token: clusterToken, credential }), 401)
    const token = await machineToken(bed, cluster)
    const parameters = { uid: uuid(secureRandom), agentVersion: '0', credential }
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential, parameters }), 401)
    const manifest = await bed.request('GET', `/v3/import/${token}_${cluster}.yaml`)
    assert.equal(manifest.status, 404)
  })

  it('refuses roles that the token does not allow', async () => {
    const node = nextNode()
    const token = await machineToken(bed, cluster)
    const asked = { mode: 'register', node, token, credential: newCredential() } as const
    assert.equal(await claimStatus(bed, { ...asked, roles: ['worker', 'controlPlane'] }), 403)
    assert.equal(machineNamed(bed, cluster, node), undefined)
    assert.equal(await claimStatus(bed, { ...asked, roles: ['worker'] }), 101)
    // A later connection cannot change the roles either.
    assert.equal(await claimStatus(bed, { node, credential: asked.credential, roles: ['controlPlane'] }), 101)
    assert.deepEqual(machineNamed(bed, cluster, node)?.spec.roles, ['worker'])
  })

  it('changes the roles of a machine only with a new token of the same cluster', async () => {
    const node = nextNode()
    const { credential } = await register(node)
    const wanted = { mode: 'register', node, credential, roles: ['etcd'] } as const
    assert.equal(await claimStatus(bed, { ...wanted, token: await machineToken(bed, other, { roles: ['etcd'] }) }), 401)
    assert.deepEqual(machineNamed(bed, cluster, node)?.spec.roles, ['worker'])
    assert.equal(
      await claimStatus(bed, { ...wanted, token: await machineToken(bed, cluster, { roles: ['etcd'] }) }),
      101,
    )
    assert.deepEqual(machineNamed(bed, cluster, node)?.spec.roles, ['etcd'])
  })

  it('refuses a second machine with the same node name in a cluster', async () => {
    const node = nextNode()
    const { credential } = await register(node)
    const token = await machineToken(bed, cluster)
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential: newCredential() }), 409)
    const thief = await register(nextNode())
    assert.equal(await claimStatus(bed, { node, credential: thief.credential }), 401)
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential: thief.credential }), 409)
    assert.equal(await claimStatus(bed, { node, credential }), 101)
  })

  it('allows the same node name in two clusters', async () => {
    const node = nextNode()
    const { machine } = await register(node)
    const token = await machineToken(bed, other)
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential: newCredential() }), 101)
    assert.notEqual(machineNamed(bed, other, node)?.metadata.name, machine.metadata.name)
  })

  it('refuses unknown credentials, and those that are too short or too long', async () => {
    const node = nextNode()
    await register(node)
    const token = await machineToken(bed, cluster)
    assert.equal(await claimStatus(bed, { node, credential: newCredential() }), 401)
    assert.equal(await claimStatus(bed, { mode: 'register', node: nextNode(), token, credential: 'short' }), 400)
    assert.equal(
      await claimStatus(bed, { mode: 'register', node: nextNode(), token, credential: 'x'.repeat(300) }),
      400,
    )
    assert.equal((await askForPlan(node, newCredential())).status, 401)
  })

  it('ends the tunnel of a removed machine, and answers its plan requests with 404 so that it cleans up', async () => {
    const node = nextNode()
    const { credential, token, machine } = await register(node, { uses: 5 })
    const connection = await claim(bed, { node, credential })
    if (typeof connection === 'number') assert.fail(`refused: ${connection}`)
    const ended = drain(connection)
    assert.equal((await askForPlan(node, credential)).status, 404)
    assert.equal(planAnswer(404, (await askForPlan(node, credential)).text, node).kind, 'none')
    assert.equal((await remove(machine)).status, 200)
    await ended
    assert.equal(await claimStatus(bed, { node, credential }), 401)
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential }), 401)
    assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential: newCredential() }), 401)
    await eventually('the agent learns of it', async () => {
      const { status, text } = await askForPlan(node, credential)
      return planAnswer(status, text, node).kind === 'not-found'
    })
    // A new machine with this name is another one.
    const next = await register(node)
    assert.equal(await claimStatus(bed, { node, credential }), 401)
    assert.equal(await claimStatus(bed, { node, credential: next.credential }), 101)
    const fresh = await machineToken(bed, cluster)
    assert.equal(await claimStatus(bed, { mode: 'register', node: nextNode(), token: fresh, credential }), 401)
  })

  it('refuses removal of a machine by users without access and through other clusters', async () => {
    const { machine } = await register(nextNode())
    const { token } = await bed.createUser('mallory')
    const path = `${machinesPath()}/${machine.metadata.name}`
    assert.equal((await bed.request('DELETE', path, { token })).status, 404)
    const elsewhere = `/v3/clusters/${other}/machines/${machine.metadata.name}`
    assert.equal((await bed.request('DELETE', elsewhere, { token: bed.administrator })).status, 404)
    assert.notEqual(bed.running.objects.get(Machines, machine.metadata.name ?? ''), undefined)
  })

  it('serves the plan of a machine from its Secret', async () => {
    const node = nextNode()
    const { credential, machine } = await register(node)
    const name = machine.metadata.name ?? ''
    await bed.running.objects.change(Machines, name, (now) => ({ ...now, spec: { ...now.spec, hasPlan: true } }))
    assert.equal((await askForPlan(node, credential)).status, 503)
    const metadata = { namespace: MANAGEMENT_NAMESPACE, name: `machine-plan-${name}` }
    await bed.running.objects.client.create(Secrets, { metadata, stringData: { 'plan.json': '{"certs":{}}' } })
    const answer = await askForPlan(node, credential)
    assert.deepEqual([answer.status, answer.body], [200, { certs: {} }])
    assert.equal((await askForPlan(node, newCredential())).status, 401)
  })

  it('writes to the status of a Machine whether its agent is connected', async () => {
    const node = nextNode()
    const { credential } = await register(node)
    const tunnel = await openTunnel(bed, { node, credential })
    await eventually('connected', () => isConnected(machineNamed(bed, cluster, node)))
    assert.equal(machineNamed(bed, cluster, node)?.status?.architecture, 'x64')
    await tunnel.close()
    await eventually('disconnected', () => !isConnected(machineNamed(bed, cluster, node)))
    assert.ok(machineNamed(bed, cluster, node)?.status?.disconnectedAt)
  })

  it('refuses streams that machines open, and survives invalid data from them', async () => {
    const node = nextNode()
    const { credential } = await register(node)
    const tunnel = await openTunnel(bed, { node, credential })
    for (const address of ['127.0.0.1:22', new URL(bed.url).host, 'kube-apiserver:443', 'machine']) {
      const { promise, resolve } = Promise.withResolvers<Error>()
      tunnel.dial('tcp', address).on('error', resolve)
      assert.match((await promise).message, /is not allowed/, address)
    }
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(64, 255), secureRandom.bytes(1 << 20)]) {
      const connection = await claim(bed, { node, credential })
      if (typeof connection === 'number') assert.fail(`refused: ${connection}`)
      const ended = drain(connection)
      await connection.send(bytes, () => undefined).catch(() => undefined)
      await ended
    }
    await tunnel.close()
    assert.equal((await bed.request('GET', '/livez')).status, 200)
  })

  const BAD_PARAMETERS: Readonly<Record<string, object>> = {
    'a string as the node': { node: 'x' },
    'no description of the machine': { node: { worker: true, requestedHostname: 'a', customConfig: {} } },
    'an array': [],
  }
  for (const [what, parameters] of Object.entries(BAD_PARAMETERS))
    it(`refuses registration parameters with ${what}`, async () => {
      const asked = { mode: 'register', node: 'x', token: 'x', credential: newCredential(), parameters } as const
      assert.equal(await claimStatus(bed, asked), 400)
    })
})

/** Reads until the other side disconnects. */
async function drain(connection: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of connection);
  } catch {
    // A broken connection has ended too.
  }
}
