/** `hyperkube build cert`: rotates certificates of a running cluster, and creates signing requests. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf, string } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { readCertificateFolder } from '#provision/builder/certificate-folder.ts'
import { converge } from '#provision/builder/converge.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'
import type { Change } from '#provision/builder/session-options.ts'
import { makeRequests } from '#provision/pki/custom.ts'
import { certificateStages } from '#provision/state/stages.ts'

import { BUILD_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

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
    'rotate replaces certificates and their keys: all of them, those of one service, or all including the certificate authorities. Services ' +
    'restart a few machines at a time; pods keep running. With --rotate-ca all machines first trust the new authorities, then ' +
    'use certificates from them, then drop the old ones. Clients need the new kubeconfig. The key of service accounts stays.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      service: flag(oneOf('', ...SERVICES), '', `rotate only certificates of this service: ${SERVICES.join(', ')}`),
      'rotate-ca': flag(bool, false, 'also rotate the certificate authorities'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const { service, 'rotate-ca': authorities } = flags
    if (service !== '' && authorities) throw new ProgramError('--rotate-ca applies to all services: omit --service')
    const say = sayTo(flags, stdout)
    const change: Change = (cluster, current, tools) =>
      certificateStages(cluster, current, { authorities, ...(service !== '' && { service }) }, tools)
    const options = withKubectl({ ...context, flags, stdout, stderr, clock, say, change })
    const session = await openOperatorSession(options, closing, signal)
    if (session.before === undefined) throw new ProgramError(`There is no cluster in ${session.files.state} yet`)
    const checks = { checksPorts: false, workersOnly: false, keepsPods: true }
    const done = await converge(session, checks, { say, isDebug: flags.debug || flags.trace, clock, signal })
    say(`Done: ${done} steps. The cluster is reached with ${session.files.kubeconfig}.`)
    return 0
  },
})

const generateCsr: Program = defineProgram({
  name: 'generate-csr',
  long:
    'generate-csr writes a key and a signing request for every certificate of the cluster to a folder. Existing files stay. ' +
    '"up --custom-certs" uses the signed certificates.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      'cert-dir': flag(string, '', '`folder` for the files (default: cluster_certs beside cluster.yml)'),
    },
  },
  async run({ flags, stdout, stderr, cwd, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, cwd, stdout, stderr, say }),
      closing,
      signal,
    )
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
  { name: 'rotate', short: 'Rotate certificates', load: () => Promise.resolve(rotate) },
  {
    name: 'generate-csr',
    short: 'Write signing requests for external certificate authorities',
    load: () => Promise.resolve(generateCsr),
  },
]

export const cert: Program = defineProgram({
  name: 'cert',
  long: 'cert manages the certificates of a cluster.',
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
