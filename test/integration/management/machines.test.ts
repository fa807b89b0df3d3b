/**
 * Tests machines with real agents at the management server: registration by command, fallback for the cluster's
 * agent, and connections of the builder.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'

import { tarArchive } from '#lib/files/tar-write.ts'
import { secureRandom } from '#lib/random.ts'
import { Clusters } from '#management/kinds/cluster.ts'
import { Connections } from '#provision/apply/connections.ts'
import { sendFile } from '#provision/apply/upload.ts'
import { MachineLost } from '#provision/machine.ts'
import type { Payload } from '#provision/payload.ts'
import { connectThroughTunnel } from '#provision/tunnel/connect.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { eventually, type ManagementBed, newCredential, startManagementBed } from './bed.ts'
import { connected, type EchoCluster, importCluster, startEchoCluster } from './downstream.ts'
import {
  claimStatus,
  createMachineProcess,
  machineConnected,
  machineNamed,
  type MachineProcess,
  machineToken,
  registration,
  writeKubeconfig,
} from './machine-bed.ts'
import { sha256 } from './machine-bed.ts'

const QUICK = { uses: 10 }

describe('a machine whose agent is connected to the management server', () => {
  let bed: ManagementBed
  let echo: EchoCluster
  let cluster = ''
  let stopClusterAgent: () => Promise<void>
  const closing = new AsyncDisposableStack()

  before(async () => {
    bed = await startManagementBed()
    echo = await startEchoCluster()
    echo.answer = (_request, response) => void response.writeHead(200).end('{"from":"echo"}')
    const { id, token } = await importCluster(bed, 'shop')
    cluster = id
    stopClusterAgent = bed.runAgent(echo.kubeconfig, token)
    await connected(bed, id)
  })
  after(async () => {
    await closing.disposeAsync()
    await bed[Symbol.asyncDispose]()
    await echo[Symbol.asyncDispose]()
  })

  async function startMachine(
    node: string,
    roles: readonly string[],
    more: readonly string[] = [],
  ): Promise<MachineProcess> {
    const { foregroundCommand } = await registration(bed, cluster, { ...QUICK, roles, nodeName: node })
    const machine = createMachineProcess(String(foregroundCommand), (root) => [
      '--internal-address=127.0.0.1',
      `--kubeconfig=${join(root, 'kubeconfig')}`,
      ...more,
    ])
    closing.use(machine)
    writeKubeconfig(machine, echo.kubeconfig)
    machine.start()
    await machineConnected(bed, cluster, node)
    return machine
  }

  const ask = (): ReturnType<ManagementBed['request']> =>
    bed.request('GET', `/k8s/clusters/${cluster}/api/v1/namespaces/x/pods`, { token: bed.administrator })

  it('registers with the command from the management server', async () => {
    const machine = await startMachine('w-1', ['worker'], ['--label=zone=a'])
    const found = machineNamed(bed, cluster, 'w-1')
    assert.deepEqual(found?.spec.roles, ['worker'])
    assert.deepEqual(found.spec.labels, { zone: 'a' })
    assert.equal(found.status?.os, 'linux')
    const file = join(machine.root, 'var/lib/hyperkube/node/credential')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const credential = readFileSync(file, 'utf8').trim()
    assert.ok(!machine.output().includes(credential), machine.output())
    assert.equal(sha256(Buffer.from(credential)), found.spec.credentialHash)
  })

  it('reconnects with its stored credential after the agent was killed', async () => {
    const machine = await startMachine('w-2', ['worker'])
    const before = machineNamed(bed, cluster, 'w-2')?.metadata.uid
    await machine.end('SIGKILL')
    await eventually(
      'the server sees it',
      () => machineNamed(bed, cluster, 'w-2')?.status?.disconnectedAt !== undefined,
    )
    machine.start()
    await machineConnected(bed, cluster, 'w-2')
    assert.equal(machineNamed(bed, cluster, 'w-2')?.metadata.uid, before)
  })

  it('proxies requests of users through a control plane machine while the cluster agent is disconnected', async () => {
    const control = await startMachine('cp-1', ['controlplane'])
    assert.equal((await ask()).status, 200)
    await stopClusterAgent()
    await eventually('the tunnel of the agent has ended', () => {
      const { disconnectedAt } = bed.running.objects.get(Clusters, cluster)?.status?.agent ?? {}
      return disconnectedAt !== undefined
    })
    echo.seen.length = 0
    const answer = await ask()
    assert.deepEqual([answer.status, answer.body], [200, { from: 'echo' }])
    const headers = echo.seen[0]?.headers.filter(([name]) => /impersonate|authorization|cookie/.test(name))
    assert.equal(headers?.filter(([name]) => name === 'impersonate-user').length, 1)
    assert.deepEqual(
      headers?.filter(([name]) => name === 'authorization' || name === 'cookie'),
      [],
    )
    const sends = await bed.request('GET', `/k8s/clusters/${cluster}/api/v1/pods`, {
      token: bed.administrator,
      headers: { 'impersonate-user': 'system:admin' },
    })
    assert.equal(sends.status, 403)
    await control.end('SIGKILL')
    // The workers are connected, but must not get requests of users.
    await eventually('requests for the cluster fail with 503', async () => (await ask()).status === 503)
  })

  describe('as a target of the cluster builder', () => {
    const folder = mkdtempSync(join(tmpdir(), 'payload-'))
    let machine: MachineProcess
    let payload: Payload
    const stop = new AbortController()

    before(async () => {
      payload = writePayload(folder)
      machine = await startMachine('b-1', ['etcd', 'controlplane', 'worker'])
    })
    after(() => {
      stop.abort()
      rmSync(folder, { recursive: true, force: true })
    })

    const home = (): string => join(machine.root, 'opt')
    const open = (): Connections => {
      const places = { home: home(), payload: () => Promise.resolve(payload) }
      return new Connections(bed.running.machines.ways(cluster, places, stop.signal).connect)
    }
    const again = async (): Promise<void> => {
      machine.start()
      await machineConnected(bed, cluster, 'b-1')
      await eventually('its tunnel is there', () => {
        const name = machineNamed(bed, cluster, 'b-1')?.metadata.name ?? ''
        return bed.running.machines.tunnels.isConnected(name)
      })
    }

    it('resumes an interrupted upload of the hyperkube program', async () => {
      const {
        objects,
        machines: { tunnels },
      } = bed.running
      const name = machineNamed(bed, cluster, 'b-1')?.metadata.name ?? ''
      let first: number | undefined
      const connect = (progress: (sent: number) => void): ReturnType<typeof connectThroughTunnel> => {
        const dial = (): ReturnType<typeof tunnels.dialBuilder> & object => {
          const stream = tunnels.dialBuilder(name)
          if (stream === undefined) throw new MachineLost('away')
          return stream
        }
        const places = { name: 'b-1', home: home(), payload: () => Promise.resolve(payload), installs: true }
        return connectThroughTunnel({ ...places, dial, clock: objects.clock, progress }, stop.signal)
      }
      let isKilled = false
      const cut = connect((sent) => {
        if (sent < payload.size / 4 || isKilled) return
        isKilled = true
        void machine.end('SIGKILL')
      })
      await assert.rejects(cut, { name: 'MachineLost' })
      await machine.end('SIGKILL')
      await again()
      const connection = await connect((sent) => (first ??= sent))
      assert.ok((first ?? 0) > 1 << 20, `it began at ${first}`)
      assert.ok(
        bed.running.machines
          .ways(cluster, { home: home(), payload: () => Promise.resolve(payload) }, stop.signal)
          .has('b-1'),
      )
      assert.equal((await connection.machine?.facts({}))?.architecture, process.arch)
      await connection.close()
      assert.deepEqual(readdirSync(join(home(), 'programs')), [payload.sha256])
    })

    it('answers calls of the builder and receives files', async () => {
      await using connections = open()
      const target = await connections.machine('b-1')
      const path = join(machine.root, 'data', 'file')
      await target.write({ path, mode: 0o640, content: Buffer.from('hello') })
      assert.deepEqual(await target.read({ path }), { content: Buffer.from('hello') })
      const source = join(folder, 'big')
      const bytes = secureRandom.bytes(9 << 20)
      writeFileSync(source, bytes)
      await sendFile(target, { source, path: `${path}.big`, sha256: sha256(bytes), mode: 0o600 }, stop.signal)
      assert.ok(readFileSync(`${path}.big`).equals(bytes))
      const outcome = await target.run({ command: ['/bin/sh', '-c', 'env; exit 3'], timeoutMs: 9000 })
      assert.equal(outcome.code, 3)
      assert.ok(!outcome.stdout.includes('CATTLE_TOKEN'))
    })

    it('rejects calls when the tunnel breaks, ends their processes, and works again after the agent reconnects', async () => {
      await using connections = open()
      const target = await connections.machine('b-1')
      const pidFile = join(machine.root, 'pid')
      const running = target.run({
        command: ['/bin/sh', '-c', `echo $$ >${pidFile}; exec sleep 600`],
        timeoutMs: 600_000,
      })
      const outcome = assert.rejects(running, { name: 'MachineLost' })
      let pid = 0
      await eventually('the program runs', () => (pid = pidIn(pidFile)) > 0)
      await machine.end('SIGKILL')
      await outcome
      await eventually('the program has ended', () => !isAlive(pid))
      await eventually('the server sees it', async () =>
        connections.machine('b-1').then(
          () => false,
          (error: unknown) => error instanceof MachineLost,
        ),
      )
      await again()
      assert.equal((await (await connections.machine('b-1')).facts({})).architecture, process.arch)
    })

    it('rejects calls to machines that are not registered or not connected', async () => {
      await using connections = open()
      await assert.rejects(connections.machine('unknown'), { name: 'MachineLost', message: /has registered/ })
      const [node, credential] = ['away', newCredential()]
      const token = await machineToken(bed, cluster)
      assert.equal(await claimStatus(bed, { mode: 'register', node, token, credential }), 101)
      const away = { name: 'MachineLost', message: /is not connected/ }
      await eventually('its tunnel has ended', () =>
        connections.machine(node).then(
          () => false,
          (error: Error) => away.message.test(error.message),
        ),
      )
    })
  })

  it('stays unregistered after its removal, even if the agent restarts', async () => {
    const machine = await startMachine('w-3', ['worker'])
    const name = machineNamed(bed, cluster, 'w-3')?.metadata.name ?? ''
    const path = `/v3/clusters/${cluster}/machines/${name}`
    assert.equal((await bed.request('DELETE', path, { token: bed.administrator })).status, 200)
    await eventually('its tunnel has ended', () => !bed.running.machines.tunnels.isConnected(name))
    await machine.end('SIGKILL')
    machine.start()
    await eventually('it is refused', () => /answered 401|401/.test(machine.output()))
    assert.equal(machineNamed(bed, cluster, 'w-3'), undefined)
  })
})

/** A program that is only a link to this checkout, and large enough to be interrupted. */
function writePayload(folder: string): Payload {
  const script = `#!/bin/sh\nexec ${HYPERKUBE} "$@"\n`
  const archive = gzipSync(
    tarArchive([
      { name: 'bin/hyperkube', mode: 0o755, content: Buffer.from(script) },
      { name: 'filler', mode: 0o644, content: secureRandom.bytes(24 << 20) },
    ]),
    { level: 1 },
  )
  const file = join(folder, 'program.tar.gz')
  writeFileSync(file, archive)
  return { file, size: archive.length, sha256: sha256(archive) }
}

function pidIn(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').trim())
  } catch {
    return 0
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
