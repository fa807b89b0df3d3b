/** kubectl taint: changes taints of nodes. */
import type { Node } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { select } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, ExitError, KubectlError } from '../errors.ts'
import {
  DRY_RUN_FLAG,
  type DryRun,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fieldValidationOf,
  SELECTOR_FLAG,
  VALIDATE_FLAG,
} from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import { changedTaints, checkContradictions, parseTaints, type TaintChanges } from '../taint/taint-changes.ts'

const FLAGS = {
  ...printFlags(),
  ...DRY_RUN_FLAG,
  ...VALIDATE_FLAG,
  ...SELECTOR_FLAG,
  ...fieldManagerFlag('kubectl-taint'),
  all: flag(bool, false, 'Select all nodes.'),
  overwrite: flag(bool, false, 'Allow existing taints to be overwritten.'),
}

type TaintInvocation = Invocation<typeof FLAGS>

export const taint: Command = defineCommand({
  name: 'taint',
  use: 'NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N [options]',
  long: 'Update the taints of nodes: KEY=VALUE:EFFECT or KEY:EFFECT sets a taint, KEY:EFFECT- removes it, KEY- removes all taints with that key. The effect is NoSchedule, PreferNoSchedule or NoExecute.',
  examples: `# Reserve node foo for pods that tolerate the taint
kubectl taint nodes foo dedicated=special-user:NoSchedule

# Remove the taint
kubectl taint nodes foo dedicated:NoSchedule-

# Remove all taints with that key
kubectl taint nodes foo dedicated-`,
  flags: FLAGS,
  completes: { resources: ['node'] },
  async run(invocation) {
    const { flags, args, session } = invocation
    const { namespace } = await session.namespace()
    await session.config()
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const fieldValidation = fieldValidationOf(flags.validate)
    const { resources, specs } = splitTaints(args)
    const changes = changesOf(invocation, specs)
    await requireNodes(invocation, resources[0] ?? '')
    checkContradictions(changes)
    if (flags.all && flags.selector !== '') {
      throw new KubectlError("setting 'all' parameter with a non empty selector is prohibited")
    }
    const isSelecting = flags.all || flags.selector !== ''
    if (!isSelecting && resources.length < 2) {
      throw new KubectlError("at least one resource name must be specified since 'all' parameter is not set")
    }
    const selection = await select({
      session,
      io: invocation,
      continueOnError: true,
      namespace,
      labelSelector: flags.selector,
      flatten: true,
      latest: true,
      all: flags.all,
      ...(isSelecting ? { resourceTypes: ['node'] } : { resourceNames: { type: 'node', names: resources.slice(1) } }),
    })
    await selection.visit((info) => taintOne(invocation, info, { changes, dryRun, fieldValidation }))
  },
})

/** Nodes come before changes on the line. */
function splitTaints(args: readonly string[]): { resources: string[]; specs: string[] } {
  const resources: string[] = []
  const specs: string[] = []
  for (const arg of args) {
    const isSpec = arg.includes('=') || arg.includes(':') || arg.endsWith('-')
    if (!isSpec && specs.length > 0) {
      throw new KubectlError(`all resources must be specified before taint changes: ${arg}`)
    }
    ;(isSpec ? specs : resources).push(arg)
  }
  if (resources.length === 0) throw new KubectlError('one or more resources must be specified as <resource> <name>')
  if (specs.length === 0) throw new KubectlError('at least one taint update is required')
  return { resources, specs }
}

function changesOf(invocation: TaintInvocation, specs: readonly string[]): TaintChanges {
  try {
    return parseTaints(specs)
  } catch (error) {
    throw usageError(invocation, asError(error).message)
  }
}

async function requireNodes({ session }: TaintInvocation, given: string): Promise<void> {
  const type = given.toLowerCase()
  const { kind } = await (await session.mapper()).named(type).catch((error: unknown) => {
    throw error instanceof KubectlError ? new ExitError(1, error.message) : error
  })
  if (kind !== 'Node') throw new KubectlError(`invalid resource type ${type}, only node types are supported`)
}

async function taintOne(
  invocation: TaintInvocation,
  info: Info,
  { changes, dryRun, fieldValidation }: { changes: TaintChanges; dryRun: DryRun; fieldValidation: string },
): Promise<void> {
  const { flags, session, stdout } = invocation
  const node = info.object as unknown as Node
  const before = { name: info.name, taints: node.spec?.taints ?? [] }
  const { taints, operation } = changedTaints(before, changes, flags.overwrite)
  const printer = await printerOf(invocation, { operation, keepOrder: true })
  if (dryRun === 'client') {
    const { taints: _, ...spec } = node.spec ?? {}
    const shown = { ...node, spec: { ...spec, ...(taints.length > 0 && { taints }) } }
    printer.print(shown as unknown as JsonObject, stdout)
    return
  }
  const query = { fieldManager: flags['field-manager'], fieldValidation, ...dryRunQuery(dryRun) }
  const patch = { spec: { taints: taints.length === 0 ? null : taints } }
  const made = await (await session.rest()).patch(info, 'strategic', patch, query)
  printer.print(made as unknown as JsonObject, stdout)
}
