/**
 * `hyperkube up`: a cluster on this machine, in the foreground until Ctrl-C; started again, the same cluster goes on. For
 * now the cluster is its API server, its controllers and its scheduler: nodes join it as they are built.
 */
import { mkdir } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { join, resolve } from 'node:path'

import { mergeKubeconfig } from '#client/kubeconfig.ts'
import { type ClusterPlan, runCluster } from '#cluster/cluster.ts'
import { keepFresh, type LocalPki, openLocalPki, pkiFolder } from '#cluster/local-pki.ts'
import { managerSettings, SERVING_NAMES, serverSettings } from '#cluster/settings.ts'
import { bracketed } from '#control-plane/addresses.ts'
import { AUDIT_FLAGS } from '#control-plane/flags/audit-flags.ts'
import type { Settings } from '#control-plane/flags/flags.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int, oneOf, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { LOG_FLAGS } from '#lib/log-flags.ts'
import { defineProgram, type Invocation, type Program, ProgramError } from '#lib/program.ts'
import { kubernetesVersion } from '#model/version.ts'

import { type DataDir, DATA_DIR_FLAGS, dataDir as dataDirOf } from './data-dir.ts'
import { startSmall } from './small-start.ts'

const FLAGS = {
  cluster: {
    ...DATA_DIR_FLAGS,
    'secure-port': flag(int, 6443, 'port of the API server; 0 picks a free one'),
    'bind-address': flag(string, '127.0.0.1', 'address the API server listens on'),
    kubeconfig: flag(string, '', 'file that gets the context "hyperkube" (default: ~/.kube/config)'),
    controllers: flag(
      strings,
      ['*'],
      'which controllers run, as for kube-controller-manager; empty: none, for those who bring their own',
    ),
    scheduler: flag(bool, true, 'whether pods get nodes; false: for those who bring their own scheduler'),
    output: flag(oneOf('', 'json'), '', 'json: one JSON line when ready', { shorthand: 'o' }),
  },
  auditing: { ...AUDIT_FLAGS },
  logs: LOG_FLAGS,
} as const

type UpInvocation = Invocation<typeof FLAGS>

/** How long requests that are running may take after Ctrl-C. */
const GRACE_MS = 5000

export const up: Program = defineProgram({
  name: 'up',
  long: 'up starts a cluster on this machine, or resumes the one in its data directory, and runs it until it is stopped.',
  version: kubernetesVersion(),
  flags: FLAGS,
  run: runUp,
})

async function runUp(invocation: UpInvocation, signal: AbortSignal): Promise<number> {
  const { flags, clock, random, log } = invocation
  const startedMs = clock.elapsed()
  const say = createReporter(invocation)
  // Whatever ends it, a signal or an error: what was opened last is closed first.
  await using closing = new AsyncDisposableStack()
  const dir = dataDirOf(flags, invocation)
  await mkdir(dir.path, { recursive: true, mode: 0o700 })
  const host = flags['bind-address']
  const folder = join(dir.path, 'pki')
  const hosts = [...new Set([...SERVING_NAMES, host])]
  const certificates = { files: pkiFolder(folder), hosts, clock, random, log }
  const pki = await openLocalPki(certificates)
  say('Certificates', folder)
  const around = { ...invocation, host: hostname(), graceMs: GRACE_MS, onStep: say }
  const starting = startSmall(() => runCluster(planOf(flags, dir), around, closing))
  const { running } = await starting.catch(explainPort(flags))
  const apiServer = `https://${bracketed(host)}:${running.port}`
  const kubeconfig = await writeKubeconfig(invocation, pki, apiServer)
  const freshness = keepFresh(certificates, pki, async (renewed) => {
    await writeKubeconfig(invocation, renewed, apiServer)
  })
  closing.defer(() => freshness.stop())
  say('Kubeconfig', `${kubeconfig}, context "hyperkube"`)
  const readyMs = Math.round(clock.elapsed() - startedMs)
  announce(invocation, { apiServer, kubeconfig, dataDir: dir.path, readyMs, nodes: 0 })
  await aborted(signal)
  say('Stopping', 'requests that are running may finish')
  return 0
}

function planOf(flags: UpInvocation['flags'], { path, location }: DataDir): ClusterPlan {
  const pki = (file: string): string => join(path, 'pki', file)
  const auditing = Object.keys(AUDIT_FLAGS).map((name) => [name, flags[name as keyof typeof flags]])
  return {
    server: serverSettings(pki, {
      ...(Object.fromEntries(auditing) as Partial<Settings>),
      datastore: location,
      'encryption-key-file': join(path, 'encryption.key'),
      'bind-address': flags['bind-address'],
      'secure-port': flags['secure-port'],
    }),
    manager: managerSettings(pki),
    controllers: flags.controllers,
    volumes: join(path, 'volumes'),
    hasScheduler: flags.scheduler,
  }
}

/** Returns the file. */
async function writeKubeconfig({ flags, cwd }: UpInvocation, pki: LocalPki, server: string): Promise<string> {
  const file = flags.kubeconfig === '' ? join(homedir(), '.kube', 'config') : resolve(cwd, flags.kubeconfig)
  await mergeKubeconfig(file, {
    name: 'hyperkube',
    server,
    certificateAuthority: pki.ca.certificatePem,
    clientCertificate: pki.admin.certificate,
    clientKey: pki.admin.key,
  })
  return file
}

interface Ready {
  readonly apiServer: string
  readonly kubeconfig: string
  readonly dataDir: string
  readonly readyMs: number
  readonly nodes: number
}

function announce({ flags, stdout }: UpInvocation, ready: Ready): void {
  if (flags.output === 'json') {
    stdout.write(`${JSON.stringify(ready)}\n`)
    return
  }
  stdout.write(
    [
      `\nReady in ${ready.readyMs} ms. This cluster has an API server, controllers and a scheduler and no nodes yet: pods of Deployments go to the nodes that you make.`,
      `Try:   kubectl --context hyperkube get namespaces`,
      `Stop:  Ctrl-C; the next "hyperkube up" goes on where this one stopped.\n\n`,
    ].join('\n'),
  )
}

/** One line for each step, with the time since the last. */
function createReporter({ flags, stdout, clock }: UpInvocation): (what: string, where: string) => void {
  let lastMs = clock.elapsed()
  return (what, where) => {
    const nowMs = clock.elapsed()
    if (flags.output !== 'json')
      stdout.write(`${what.padEnd(14)}${`${Math.round(nowMs - lastMs)} ms`.padStart(8)}   ${where}\n`)
    lastMs = nowMs
  }
}

function explainPort(flags: UpInvocation['flags']): (error: unknown) => never {
  return (error) => {
    const { cause } = error as Error
    if ((cause as NodeJS.ErrnoException | undefined)?.code !== 'EADDRINUSE') throw error
    const port = flags['secure-port']
    throw new ProgramError(`Port ${port} is in use; is another cluster running? Choose another with --secure-port`, {
      cause,
    })
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
}
