/** kubectl create: creates objects from files. Its subcommands generate objects of many kinds. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { withSavedConfig } from '../apply/last-applied.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, KubectlError, withSource } from '../errors.ts'
import {
  DRY_RUN_FLAG,
  dryRunOf,
  dryRunQuery,
  fieldManagerFlag,
  fieldValidationOf,
  fileFlags,
  SELECTOR_FLAG,
  VALIDATE_FLAG,
  withDryRun,
} from '../flag-sets.ts'
import { GENERATORS } from '../generators/index.ts'
import { rawPathProblem, sendRaw } from '../manifests/raw.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG, recorded } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('to use to create the resource'),
  ...DRY_RUN_FLAG,
  ...SELECTOR_FLAG,
  ...VALIDATE_FLAG,
  ...RECORD_FLAG,
  ...fieldManagerFlag('kubectl-create'),
  edit: flag(bool, false, 'Edit the object before creating it.'),
  'windows-line-endings': flag(bool, false, 'With --edit, use Windows line endings.'),
  'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
  raw: flag(string, '', 'Path on the server to POST to.'),
}

type CreateInvocation = Invocation<typeof FLAGS>

export const create: Command = defineCommand({
  name: 'create',
  use: '-f FILENAME [options]',
  long: 'Create a resource from a file or from stdin, in JSON or YAML.',
  examples: `# Create a pod from pod.json
kubectl create -f ./pod.json

# Create a pod from standard input
cat pod.json | kubectl create -f -`,
  flags: FLAGS,
  commands: GENERATORS,
  async run(invocation) {
    const { args, flags, session, stdout } = invocation
    if (args.length > 0) throw usageError(invocation, `Unexpected args: [${args.join(' ')}]`)
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const fieldValidation = fieldValidationOf(flags.validate)
    const printer = await printerOf(invocation, { operation: withDryRun('created', dryRun) })
    checkFlags(flags)
    if (flags.raw !== '') return sendRaw(invocation, 'POST', flags.raw, flags.filename[0])
    await session.config()
    const selection = await selectFor(invocation, {
      labelSelector: flags.selector,
      validate: fieldValidation === 'Strict',
    })
    if (flags.edit) {
      const { editObjects } = await import('../edit/editing.ts')
      return selection.visit((info) => editObjects(invocation, [info], { mode: 'create', fieldValidation }))
    }
    const rest = await session.rest()
    const query = { fieldManager: flags['field-manager'], fieldValidation, ...dryRunQuery(dryRun) }
    let count = 0
    await selection.visit(async (info) => {
      const object = recorded(invocation, withSavedConfig(info.object as AnyObject, flags['save-config']))
      const { resourceVersion: _, ...metadata } = object.metadata
      const { kind, namespace: where, source } = info
      const made =
        dryRun === 'client'
          ? object
          : await rest.create({ kind, namespace: where }, { ...object, metadata }, query).catch((error: unknown) => {
              throw withSource('creating', source, asError(error))
            })
      count++
      printer.print(made as unknown as JsonObject, stdout)
    })
    if (count === 0) throw new KubectlError('no objects passed to create')
    return undefined
  },
})

function checkFlags(flags: CreateInvocation['flags']): void {
  if (flags.filename.length === 0 && flags.kustomize === '') {
    throw new KubectlError('must specify one of -f and -k')
  }
  if (flags.raw !== '') {
    if (flags.edit) throw new KubectlError('--raw and --edit are mutually exclusive')
    if (flags.filename.length !== 1) throw new KubectlError('--raw can only use a single local file or stdin')
    if (flags.selector !== '') throw new KubectlError('--raw and --selector (-l) are mutually exclusive')
    const problem = rawPathProblem(flags)
    if (problem !== undefined) throw problem
  }
}
