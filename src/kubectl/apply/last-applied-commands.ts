/** kubectl apply view-last-applied, set-last-applied and edit-last-applied: what client-side apply remembers of objects. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { writeJson } from '#lib/json-write.ts'
import { stringifyJson } from '#lib/json.ts'
import { stringifyYaml } from '#lib/yaml-write.ts'
import { isNotFound } from '#meta/status.ts'

import { readObject } from '../builder.ts'
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
import { LAST_APPLIED, lastApplied } from '../last-applied.ts'
import { printerOf, printFlags } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'
import type { AnyObject } from '../rest.ts'
import { selectFor } from '../selected.ts'
import type { Info } from '../selecting.ts'
import { infoText } from './client-side.ts'

export const applyViewLastApplied: Command = defineCommand({
  name: 'view-last-applied',
  use: '(TYPE [NAME | -l label] | TYPE/NAME | -f FILENAME) [options]',
  long: 'Show what was applied last, in YAML or JSON.',
  examples: '# What was applied last, in YAML\nkubectl apply view-last-applied deployment/nginx',
  flags: {
    ...fileFlags('that contains the last-applied-configuration annotations'),
    ...SELECTOR_FLAG,
    all: flag(bool, false, 'Select all objects of the given types in the namespace.'),
    output: flag(string, 'yaml', 'Output format. Must be one of (yaml, json)', { shorthand: 'o' }),
  },
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
        // Upstream complains only of what came from a file.
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

/** As the annotation holds what a file says. */
function annotationOf(object: AnyObject): string {
  return `${stringifyJson(object, { sortedKeys: true })}\n`
}

export const applySetLastApplied: Command = defineCommand({
  name: 'set-last-applied',
  use: '-f FILENAME [options]',
  long: 'Set what was applied last to what a file says, without changing anything else of the object.',
  examples: '# Remember what deploy.yaml says\nkubectl apply set-last-applied -f deploy.yaml --create-annotation=true',
  flags: {
    ...printFlags(),
    ...DRY_RUN_FLAG,
    'create-annotation': flag(bool, false, 'Also of objects that nobody applied before.'),
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
    // A context that is not there is told before all else.
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
  long: 'Edit what was applied last, with the editor of KUBE_EDITOR or EDITOR, or vi.',
  examples: '# Edit it in YAML\nkubectl apply edit-last-applied deployment/nginx',
  flags: {
    ...printFlags(),
    ...fileFlags('to use to edit the resource'),
    ...VALIDATE_FLAG,
    ...RECORD_FLAG,
    ...fieldManagerFlag('kubectl-client-side-apply'),
    'windows-line-endings': flag(bool, false, 'Line ends as Windows has them.'),
  },
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
