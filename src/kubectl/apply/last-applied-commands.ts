/**
 * kubectl apply view-last-applied, set-last-applied and edit-last-applied: show and change the
 * last-applied-configuration annotation.
 */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { stringifyJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { writeJson } from '#lib/json/write.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import { isNotFound } from '#meta/status.ts'

import { readObject } from '../builder/builder.ts'
import type { Info } from '../builder/select-options.ts'
import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, usageError } from '../command.ts'
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
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import type { AnyObject } from '../session/rest.ts'
import { infoText } from './client-side.ts'
import { LAST_APPLIED, lastApplied } from './last-applied.ts'

export const applyViewLastApplied: Command = defineCommand({
  name: 'view-last-applied',
  use: '(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME) [options]',
  long: 'Show the last applied configuration of an object, in YAML or JSON.',
  examples:
    '# Show the last applied configuration of a deployment in YAML\nkubectl apply view-last-applied deployment/nginx',
  flags: {
    ...fileFlags('that contains the last-applied-configuration annotations'),
    ...SELECTOR_FLAG,
    all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
    output: flag(string, 'yaml', 'Output format. Must be one of (yaml, json)', { shorthand: 'o' }),
  },
  completes: 'resources',
  async run(invocation) {
    const { args, flags, session, stdout } = invocation
    const { isExplicit } = await session.namespace()
    const selection = await selectFor(invocation, {
      continueOnError: false,
      args,
      allowEmptySelector: isExplicit,
      all: flags.all,
      labelSelector: flags.selector,
      latest: true,
    })
    const found: string[] = []
    await selection.visit(async ({ name, source, object }) => {
      const text = object?.metadata.annotations?.[LAST_APPLIED]
      if (text === undefined) {
        // Upstream reports a missing annotation only for objects from a file.
        const why = `no last-applied-configuration annotation found on resource: ${name}\n`
        if (source !== '') throw withSource(why, source, new KubectlError('<nil>'))
        return
      }
      found.push(text)
    })
    for (const text of found) {
      const value = JSON.parse(text) as JsonObject
      if (flags.output === 'json') stdout.write(`${writeJson(value, { indent: 2 })}${/\s*$/.exec(text)?.[0] ?? ''}`)
      else if (flags.output === 'yaml') stdout.write(stringifyYaml(value))
      else {
        throw usageError(
          invocation,
          `Unexpected -o output mode: ${flags.output}, the flag 'output' must be one of yaml|json`,
        )
      }
    }
  },
})

/** The annotation contains the configuration in the form of a file. */
function annotationOf(object: AnyObject): string {
  return `${stringifyJson(object, { sortedKeys: true })}\n`
}

export const applySetLastApplied: Command = defineCommand({
  name: 'set-last-applied',
  use: '-f FILENAME [options]',
  long: 'Set the last-applied-configuration annotation to the contents of a file. Nothing else of the object changes.',
  examples:
    '# Set the last applied configuration of a deployment to deploy.yaml\nkubectl apply set-last-applied -f deploy.yaml --create-annotation=true',
  flags: {
    ...printFlags(),
    ...DRY_RUN_FLAG,
    'create-annotation': flag(bool, false, 'If true, also set the annotation on objects that do not have it yet.'),
    filename: flag(
      strings,
      [],
      'Filename, directory, or URL to files that contains the last-applied-configuration annotations',
      { shorthand: 'f' },
    ),
  },
  async run(invocation) {
    const { flags, session, stdout } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    // An unknown context is reported before everything else.
    await session.namespace()
    const printer = await printerOf(invocation, { operation: withDryRun('configured', dryRun) })
    const selection = await selectFor(invocation, { continueOnError: false })
    const rest = await session.rest()
    const changes: { info: Info; live: AnyObject; text: string }[] = []
    await selection.visit(async (info) => {
      const text = annotationOf(info.object as AnyObject)
      const live = await readObject(rest, info).catch((error: unknown) => {
        if (isNotFound(error)) throw error
        const about = `retrieving current configuration of:\n${infoText(info)}\nfrom server for:`
        throw withSource(about, info.source, asError(error))
      })
      const before = lastApplied(live)
      if (before === undefined && !flags['create-annotation']) {
        throw new KubectlError(
          `no last-applied-configuration annotation found on resource: ${info.name}, to create the annotation, run the command with --create-annotation`,
        )
      }
      if (before !== undefined && annotationOf(before as unknown as AnyObject) === text) {
        stdout.write(`set-last-applied ${info.name}: no changes required.\n`)
      } else changes.push({ info, live, text })
    })
    for (const { info, live, text } of changes) {
      const patch = { metadata: { annotations: { [LAST_APPLIED]: text } } }
      const object = dryRun === 'client' ? live : await rest.patch(info, 'merge', patch, dryRunQuery(dryRun))
      printer.print(object as unknown as JsonObject, stdout)
    }
  },
})

export const applyEditLastApplied: Command = defineCommand({
  name: 'edit-last-applied',
  use: '(RESOURCE/NAME | -f FILENAME) [options]',
  long: 'Edit the last applied configuration in the editor from KUBE_EDITOR or EDITOR, or in vi.',
  examples:
    '# Edit the last applied configuration of a deployment in YAML\nkubectl apply edit-last-applied deployment/nginx',
  flags: {
    ...printFlags(),
    ...fileFlags('to use to edit the resource'),
    ...VALIDATE_FLAG,
    ...RECORD_FLAG,
    ...fieldManagerFlag('kubectl-client-side-apply'),
    'windows-line-endings': flag(bool, false, 'Use Windows line endings in the edited file.'),
  },
  completes: 'resources',
  async run(invocation) {
    const { args, flags } = invocation
    const selection = await selectFor(invocation, {
      args,
      allowEmptySelector: true,
      latest: true,
    })
    const fieldValidation = fieldValidationOf(flags.validate)
    const { infos, error } = await selection.infos()
    if (error !== undefined) throw error
    const remembered = infos.flatMap((info) => {
      const object = lastApplied(info.object as AnyObject)
      return object === undefined ? [] : [{ ...info, object: object as unknown as AnyObject }]
    })
    if (remembered.length === 0) {
      throw new KubectlError(
        'no last-applied-configuration annotation found on resources, to create the annotation, use command `kubectl apply set-last-applied --create-annotation`',
      )
    }
    const { editObjects } = await import('../edit/editing.ts')
    await editObjects(invocation, remembered, { mode: 'last-applied', fieldValidation })
  },
})
