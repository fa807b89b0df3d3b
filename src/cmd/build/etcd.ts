/** `hyperkube build etcd`: snapshots of the cluster's memory. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { type Command, defineProgram, type Program, ProgramError } from '#lib/program.ts'
import { onceName } from '#provision/snapshot-schedule.ts'
import { planSave } from '#provision/snapshots.ts'
import { encodeState } from '#provision/state.ts'

import { bringProgram, carryOut } from './bring.ts'
import { BUILD_FLAGS, CERTIFICATE_FLAGS } from './flags.ts'
import { sayTo } from './progress.ts'
import { openSession, type Session } from './session.ts'
import { listOn, restoreSnapshot, snapshotCommand } from './snapshots.ts'

/** A name is part of a path and is typed by people. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

function checkName(name: string): void {
  if (!NAME.test(name))
    throw new ProgramError(`"${name}" cannot be the name of a snapshot; use letters, digits, ".", "_" and "-"`)
}

function builtOf({ before, files, cluster }: Session): NonNullable<Session['before']> {
  if (before === undefined) throw new ProgramError(`There is no cluster in ${files.state} yet`)
  if (cluster.services.etcd.external_urls.length > 0)
    throw new ProgramError("etcd is somebody else's (services.etcd.external_urls): its owner takes snapshots of it")
  return before
}

const save: Program = defineProgram({
  name: 'snapshot-save',
  long:
    'snapshot-save saves all that etcd holds, on every machine of the etcd plane, below /opt/rke/etcd-snapshots, with the state of the ' +
    'cluster beside it: both hold private keys. "remove" leaves them. With s3backupconfig it is copied to that bucket too.',
  flags: {
    build: { ...BUILD_FLAGS, name: flag(string, '', 'how it is called (default: rke_etcd_snapshot_ and the time)') },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stdout)
    const name = flags.name === '' ? onceName(clock.now()) : flags.name
    checkName(name)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    const before = builtOf(session)
    await bringProgram(session, say)
    const desired = await session.desired(session.stage)
    const state = encodeState({ desiredState: before, currentState: before })
    const command = snapshotCommand(session, desired)
    await carryOut(session, planSave(desired, name, { command, state }), {
      say,
      isDebug: flags.debug || flags.trace,
      clock,
      signal,
    })
    say(`Snapshot ${name} is saved.`)
    return 0
  },
})

const list: Program = defineProgram({
  name: 'snapshot-list',
  long: 'snapshot-list shows the snapshots of etcd on machines of the etcd plane, and whether they are whole.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    builtOf(session)
    const desired = await session.desired(session.stage)
    const listed = await listOn(session, desired, signal)
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
    'snapshot-restore puts a snapshot in the place of all that etcd holds, on all machines of the etcd plane: what was changed since is ' +
    'lost. The control plane stops meanwhile; pods go on. Machines may be others than those that the snapshot is of, as long as one of ' +
    'them has it below /opt/rke/etcd-snapshots, or the bucket of s3backupconfig has.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...CERTIFICATE_FLAGS,
      name: flag(string, '', 'name of the snapshot'),
      'use-local-state': flag(
        bool,
        false,
        'take the key of Secrets from the state here, not from the one beside the snapshot',
      ),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const { name } = flags
    if (name === '') throw new ProgramError('Say with --name which snapshot; "etcd snapshot-list" shows them')
    checkName(name)
    const say = sayTo(flags, stdout)
    const options = { ...context, flags, stdout, stderr, clock, say }
    await restoreSnapshot(options, { name, usesLocalState: flags['use-local-state'] }, closing, signal)
    say(`The cluster is what it was when snapshot ${name} was saved.`)
    return 0
  },
})

const COMMANDS: readonly Command[] = [
  { name: 'snapshot-save', short: 'Saves all that etcd holds', load: () => Promise.resolve(save) },
  { name: 'snapshot-list', short: 'Shows which snapshots there are', load: () => Promise.resolve(list) },
  { name: 'snapshot-restore', short: 'Puts a snapshot in the place of all data', load: () => Promise.resolve(restore) },
]

export const etcd: Program = defineProgram({
  name: 'etcd',
  long: "etcd is about the cluster's memory.",
  flags: {},
  commands: [{ title: 'Commands', commands: COMMANDS }],
  async run({ help, stdout }) {
    stdout.write(await help())
    return 1
  },
})
