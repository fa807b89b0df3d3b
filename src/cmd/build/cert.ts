/** `hyperkube build cert`: new certificates for a cluster that is at work, and requests for those that others sign. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { writeFileAtomically } from '#lib/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { makeRequests } from '#provision/pki/custom.ts'
import { certificateStages } from '#provision/stages.ts'

import { bringUp } from './bring.ts'
import { readCertificateFolder } from './certificate-folder.ts'
import { BUILD_FLAGS } from './flags.ts'
import { sayTo } from './progress.ts'
import { openSession } from './session.ts'

const SERVICES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'etcd',
] as const

const rotate: Program = defineProgram({
  name: 'rotate',
  long:
    'rotate gives the cluster new certificates with new keys: all of them, those of one service, or all with new authorities. Services ' +
    'that use them start again, a few machines at a time; pods stay. With --rotate-ca all machines first trust the new authorities, then ' +
    'show certificates of them, then no longer trust the old ones: clients need the new kubeconfig. The key of service accounts stays.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      service: flag(oneOf('', ...SERVICES), '', `only those of this service: ${SERVICES.join(', ')}`),
      'rotate-ca': flag(bool, false, 'the authorities too'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const { service, 'rotate-ca': authorities } = flags
    if (service !== '' && authorities) throw new ProgramError('--rotate-ca is of all services: leave --service out')
    const say = sayTo(flags, stdout)
    const session = await openSession(
      {
        ...context,
        flags,
        stdout,
        stderr,
        clock,
        say,
        change: (cluster, held, tools) =>
          certificateStages(cluster, held, { authorities, ...(service !== '' && { service }) }, tools),
      },
      closing,
      signal,
    )
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    const options = { checksPorts: false, workersOnly: false, keepsPods: true }
    const done = await bringUp(session, options, { say, isDebug: flags.debug || flags.trace, clock, signal })
    say(`Done: ${done} steps. The cluster is reached with ${session.files.kubeconfig}.`)
    return 0
  },
})

const generateCsr: Program = defineProgram({
  name: 'generate-csr',
  long:
    'generate-csr writes a key and a request for every certificate of the cluster to a folder. What the folder has already stays. The ' +
    'signed certificates are used by "up --custom-certs".',
  flags: {
    build: {
      ...BUILD_FLAGS,
      'cert-dir': flag(string, '', '`folder` they are written to (default: cluster_certs beside cluster.yml)'),
    },
  },
  async run({ flags, stdout, stderr, cwd, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession({ ...context, flags, cwd, stdout, stderr, say }, closing, signal)
    const folder = flags['cert-dir'] === '' ? session.files.certificates : resolve(cwd, flags['cert-dir'])
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const present = await readCertificateFolder(folder)
    const requests = makeRequests(session.cluster, present)
    for (const [name, text] of requests)
      if (present.get(name) !== text) await writeFileAtomically(join(folder, name), text, { mode: 0o600 })
    stdout.write(`${requests.size} files are in ${folder}\n`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'rotate', short: 'Makes new certificates', load: () => Promise.resolve(rotate) },
  {
    name: 'generate-csr',
    short: 'Writes requests for certificates that others sign',
    load: () => Promise.resolve(generateCsr),
  },
]

export const cert: Program = defineProgram({
  name: 'cert',
  long: 'cert is about the certificates of a cluster.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
