/** kubectl undo: brings objects back to an earlier state. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { readLine } from '../manifests/raw.ts'
import { absoluteMoment } from '../past/absolute-moment.ts'
import type { ObjectName, PlannedUndo, UndoSearch } from '../past/undo-search.ts'
import { isTerminal } from '../streams/terminal.ts'

const FLAGS = {
  to: flag(string, '', 'Moment of the state to bring back: -2m, 2026-11-18T03:00Z or rv:812.'),
  since: flag(string, '', 'Undo the changes since this moment: the same as --to.'),
  by: flag(string, '', 'Undo only changes of this field manager, such as kubectl-edit.'),
  'dry-run': flag(bool, false, 'Print the plan only.'),
  yes: flag(bool, false, 'Do not ask for confirmation.', { shorthand: 'y' }),
}

type UndoInvocation = Invocation<typeof FLAGS>

export const undo: Command = defineCommand({
  name: 'undo',
  use: '(TYPE/NAME ... | TYPE NAME | [-n NAMESPACE] --since MOMENT) [--to MOMENT] [--by MANAGER] [options]',
  long:
    'Bring objects back to an earlier state: their spec, data, labels and annotations. The server must be hyperkube, ' +
    'and its history must reach back to that state.\n\n' +
    'With a name, undo reverts the last change of the spec or data, a deletion too; with --to, all changes since a moment. Without a name it ' +
    'reverts all changes in the namespace: it creates deleted objects again, with a new uid, and deletes new ones. ' +
    'Status, Pods, Nodes, Endpoints, EndpointSlices, Leases, Events and objects of controllers are left alone.\n\n' +
    'undo prints a plan first. It refuses objects that another manager changed as well, Secrets, whose values the past ' +
    'does not have, and deletions that would lose data. The exit code is 1 if it refused an object.',
  examples: `# Undo the last change of a Deployment
kubectl undo deployment/web

# Show how to bring a namespace back to its state of two minutes ago
kubectl undo -n shop --since -2m --dry-run

# Undo all changes that were made with kubectl edit in the last two minutes
kubectl undo -n shop --since -2m --by kubectl-edit --yes

# Create a deleted ConfigMap again
kubectl undo configmap/settings --to 2026-11-18T03:00Z`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { flags, session, stdout, stderr } = invocation
    const search = await searchOf(invocation)
    const plan = await planOf(invocation, search)
    const { carryOut, planLine } = await import('../past/undo-actions.ts')
    for (const planned of plan) stdout.write(`${planLine(planned)}\n`)
    const accepted = plan.filter(({ step }) => step.action !== 'refuse')
    const refusedCode = accepted.length < plan.length ? 1 : 0
    if (plan.length === 0) stdout.write('Nothing to undo\n')
    if (flags['dry-run'] || accepted.length === 0) return refusedCode
    if (!flags.yes && !(await isConfirmed(invocation, accepted.length))) return 1
    const failed = await carryOut(await session.rest(), accepted, { stdout, stderr })
    return failed > 0 ? 1 : refusedCode
  },
})

async function searchOf({ flags, session, clock }: UndoInvocation): Promise<UndoSearch> {
  const { to, since, by } = flags
  if (to !== '' && since !== '') throw new KubectlError('--to and --since cannot be used together')
  const [name, text] = to === '' ? ['--since', since] : ['--to', to]
  const { namespace } = await session.namespace()
  return {
    session,
    namespace,
    ...(text !== '' && { moment: absoluteMoment(name, text, clock.now()) }),
    ...(by !== '' && { by }),
  }
}

async function planOf(invocation: UndoInvocation, search: UndoSearch): Promise<readonly PlannedUndo[]> {
  const names = namesIn(invocation)
  const { planNamespace, planObject } = await import('../past/undo-search.ts')
  if (names.length > 0) {
    const plan: PlannedUndo[] = []
    for (const name of names) {
      const planned = await planObject(search, name)
      if (planned !== undefined) plan.push(planned)
    }
    return plan
  }
  const { moment } = search
  if (moment === undefined) throw usageError(invocation, 'Give TYPE/NAME, or --since for all changes in the namespace')
  return planNamespace({ ...search, moment })
}

/** `TYPE/NAME…` or `TYPE NAME…`. Throws KubectlError. */
function namesIn(invocation: UndoInvocation): ObjectName[] {
  const { args } = invocation
  const [first = '', ...others] = args
  if (args.length > 0 && !first.includes('/')) {
    if (others.length === 0) throw usageError(invocation, `Give the name of one of the ${first}`)
    return others.map((name) => ({ type: first, name }))
  }
  return args.map((arg) => {
    const [type = '', name = '', ...rest] = arg.split('/')
    if (type === '' || name === '' || rest.length > 0) throw usageError(invocation, `"${arg}" is not TYPE/NAME`)
    return { type, name }
  })
}

async function isConfirmed({ stdin, stdout }: UndoInvocation, count: number): Promise<boolean> {
  const input = stdin()
  if (!isTerminal(input)) {
    throw new KubectlError('standard input is not a terminal: confirm the plan with --yes')
  }
  stdout.write(`Do you want to undo ${count === 1 ? 'this change' : `these ${count} changes`}? (y/N): `)
  const isAgreed = (await readLine(input)).trim().toLowerCase() === 'y'
  if (!isAgreed) stdout.write('nothing was changed\n')
  return isAgreed
}
