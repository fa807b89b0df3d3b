/** `hyperkube build etcd`: manages snapshots of etcd. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { etcdToolFolders, openOperatorSession, type OperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'
import { checkSnapshotName, listSnapshots, restoreSnapshot, saveSnapshot } from '#provision/builder/snapshots.ts'
import { onceName } from '#provision/plan/snapshot-schedule.ts'

import { BUILD_FLAGS, CERTIFICATE_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

function checkBuilt({ before, files }: OperatorSession): void {
  if (before === undefined) throw new ProgramError(`There is no cluster in ${files.state} yet`)
}

const save: Program = defineProgram({
  name: 'snapshot-save',
  long:
    'snapshot-save saves the contents of etcd on every machine of the etcd plane, below /opt/rke/etcd-snapshots, together with the state ' +
    'file of the cluster. Both contain private keys. "remove" keeps them. With s3backupconfig they are also copied to that bucket.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      name: flag(string, '', 'name of the snapshot (default: rke_etcd_snapshot_ and the time)'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const name = flags.name === '' ? onceName(clock.now()) : flags.name
    checkSnapshotName(name)
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdout, stderr, clock, say }),
      closing,
      signal,
    )
    checkBuilt(session)
    await saveSnapshot(session, name, { say, isDebug: flags.debug || flags.trace, clock, signal })
    say(`Snapshot ${name} is saved.`)
    return 0
  },
})

const list: Program = defineProgram({
  name: 'snapshot-list',
  long: 'snapshot-list lists the snapshots on machines of the etcd plane and shows whether they are complete.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdout, stderr, clock, say }),
      closing,
      signal,
    )
    checkBuilt(session)
    const listed = await listSnapshots(session, signal)
    const copies = new Map(
      listed.flatMap((each) => each.snapshots.filter(({ isCopy }) => isCopy)).map((copy) => [copy.name, copy]),
    )
    for (const { host, snapshots } of listed)
      for (const { name, revision, sizeBytes, problem } of snapshots.filter(({ isCopy }) => !isCopy))
        stdout.write(`${host}  ${name}  ${problem ?? `revision ${revision}, ${sizeBytes} bytes`}\n`)
    for (const { name, sizeBytes, problem } of copies.values())
      stdout.write(`S3  ${name}  ${problem ?? `${sizeBytes} bytes`}\n`)
    return 0
  },
})

const restore: Program = defineProgram({
  name: 'snapshot-restore',
  long:
    'snapshot-restore replaces the contents of etcd on all machines of the etcd plane with a snapshot. Later changes are ' +
    'lost. The control plane stops in the meantime; pods keep running. The machines may differ from those of the snapshot, if one of ' +
    'them has the snapshot below /opt/rke/etcd-snapshots, or if it is in the bucket of s3backupconfig.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...CERTIFICATE_FLAGS,
      name: flag(string, '', 'name of the snapshot'),
      'use-local-state': flag(
        bool,
        false,
        'use the encryption key of the local state file instead of the one beside the snapshot',
      ),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const { name } = flags
    if (name === '') throw new ProgramError('Set --name to the name of a snapshot; "etcd snapshot-list" lists them')
    checkSnapshotName(name)
    const say = sayTo(flags, stdout)
    const options = withKubectl({ ...context, flags, stdout, stderr, clock, say })
    await restoreSnapshot(
      {
        name,
        usesLocalState: flags['use-local-state'],
        open: (change) => openOperatorSession({ ...options, ...(change !== undefined && { change }) }, closing, signal),
        toolFolders: etcdToolFolders(options),
      },
      { say, isDebug: flags.debug || flags.trace, clock, signal },
    )
    say(`The cluster is restored from snapshot ${name} .`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'snapshot-save', short: 'Save a snapshot of etcd', load: () => Promise.resolve(save) },
  { name: 'snapshot-list', short: 'List the snapshots of etcd', load: () => Promise.resolve(list) },
  { name: 'snapshot-restore', short: 'Restore etcd from a snapshot', load: () => Promise.resolve(restore) },
]

export const etcd: Program = defineProgram({
  name: 'etcd',
  long: "etcd manages snapshots of the cluster's etcd.",
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
