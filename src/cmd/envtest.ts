/**
 * Runs the programs that envtest starts as kube-apiserver and etcd (see assets.ts). The server stores objects in memory
 * only.
 */
import { createServer } from 'node:http'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'

import { APISERVER_FLAGS, type Settings } from '#control-plane/flags/flags.ts'
import { aborted } from '#lib/abort.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

/** Tests end at once, so the server does not wait for running requests. */
const GRACE_MS = 1000

export const envtestServer: Program = defineProgram({
  name: 'envtest-kube-apiserver',
  long: 'envtest-kube-apiserver is kube-apiserver with objects in memory; it ignores --etcd-servers.',
  version: kubernetesVersion(),
  flags: {
    ...APISERVER_FLAGS,
    envtest: { 'with-controllers': flag(bool, false, 'also run controllers, a scheduler and a simulated node') },
  },
  async run(invocation, signal) {
    const { 'with-controllers': isWhole, ...flags } = invocation.flags
    const given = flags as unknown as Settings
    const modes = given['authorization-mode']
    const server: Settings = {
      ...given,
      'etcd-servers': [],
      datastore: 'memory',
      // The name of the simulated node.
      'authorization-mode': isWhole && !modes.includes('Node') ? ['Node', ...modes] : modes,
    }
    const [{ runCluster }, { controllerSettings }] = await Promise.all([
      import('#cluster/cluster.ts'),
      import('#controllers/settings.ts'),
    ])
    const manager = controllerSettings({
      'root-ca-file': given['client-ca-file'],
      'service-account-private-key-file': given['service-account-signing-key-file'],
      'service-cluster-ip-range': given['service-cluster-ip-range'],
    })
    const plan = {
      server,
      manager,
      controllers: isWhole ? ['*'] : [],
      volumes: join(tmpdir(), 'hyperkube-volumes'),
      hasScheduler: isWhole,
      nodes: { simulated: isWhole ? 1 : 0 },
    }
    await using closing = new AsyncDisposableStack()
    const changed = new Set([...invocation.changed].filter((name) => name !== 'etcd-servers'))
    await runCluster(plan, { ...invocation, changed, host: hostname(), graceMs: GRACE_MS }, closing)
    await aborted(signal)
    return 0
  },
})

const etcd = defineProgram({
  name: 'envtest-etcd',
  long: 'envtest-etcd only reports that it is healthy, which is all that envtest needs.',
  version: kubernetesVersion(),
  flags: { etcd: { 'listen-client-urls': flag(strings, [], 'URLs to listen on; only the first is used') } },
  async run({ flags }, signal) {
    const [first = ''] = flags['listen-client-urls']
    if (!URL.canParse(first)) throw new ProgramError('--listen-client-urls must not be empty')
    const { hostname: host, port } = new URL(first)
    const server = createServer((request, response) => {
      const isWell = request.url === '/health'
      response.writeHead(isWell ? 200 : 404, { 'content-type': 'application/json' })
      response.end(isWell ? '{"health":"true","reason":""}' : '{}')
    })
    await new Promise<void>((listening, failed) => {
      server.once('error', (cause) =>
        failed(new ProgramError(`Cannot listen on ${first}: ${cause.message}`, { cause })),
      )
      server.listen(Number(port), host, listening)
    })
    await aborted(signal)
    server.closeAllConnections()
    server.close()
    return 0
  },
})

/** Flags about storage and its security have no effect, because nothing is stored. */
export const envtestEtcd: Program = {
  name: etcd.name,
  run(context, signal) {
    const args = context.args.filter((arg) => /^(?:-h|--help|--version|--listen-client-urls=.*)$/.test(arg))
    return etcd.run({ ...context, args }, signal)
  },
}
