/** kubectl kuberc set: writes defaults, aliases and the credential plugin policy to a kuberc file. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { failuresOf, KubectlError } from '../errors.ts'
import {
  KUBERC_FLAG,
  NEW_PREFERENCE,
  locationOf,
  readPreferenceFile,
  savePreferenceFile,
  type PreferenceFile,
} from './preference-file.ts'

const DEFAULTS = 'defaults'
const ALIASES = 'aliases'
const PLUGINS = 'credentialplugin'

const FLAGS = {
  ...KUBERC_FLAG,
  'allowlist-entry': flag(stringArray, [], 'Credential plugin to allow, as command=NAME; may be repeated.'),
  appendarg: flag(stringArray, [], 'For aliases: argument to add after those of the line; may be repeated.'),
  command: flag(string, '', "Command of the entry (such as 'get', 'create' or 'set env')."),
  name: flag(string, '', 'For aliases: name of the alias.'),
  option: flag(stringArray, [], 'Flag and its value, as flag=value; may be repeated.'),
  overwrite: flag(bool, false, 'Replace an existing entry.'),
  policy: flag(string, '', "Policy for credential plugins: 'AllowAll', 'DenyAll' or 'Allowlist'."),
  prependarg: flag(stringArray, [], 'For aliases: argument to add before those of the line; may be repeated.'),
  section: flag(string, '', "Section to change: 'defaults', 'aliases' or 'credentialplugin'.", { required: true }),
}

type SetInvocation = Invocation<typeof FLAGS>

export const kubercSet: Command = defineCommand({
  name: 'set',
  use: '--section (defaults|aliases) --command COMMAND [options]',
  long: `Set values in a section of the kuberc file.

 *  defaults: default values for flags of a command. --command gives the command without arguments.
 *  aliases: a name for a command with its flags and arguments.
 *  credentialplugin: the policy for credential plugins.`,
  examples: `# Make wide output the default of 'get'
kubectl kuberc set --section defaults --command get --option output=wide

# Make YAML output the default of 'set env'
kubectl kuberc set --section defaults --command "set env" --option output=yaml

# Create the alias 'getn' for 'get nodes'
kubectl kuberc set --section aliases --name getn --command get --prependarg nodes --option output=wide

# Replace a default
kubectl kuberc set --section defaults --command get --option output=json --overwrite

# Allow only one credential plugin
kubectl kuberc set --section credentialplugin --policy Allowlist --allowlist-entry command=cloud-credential-helper`,
  flags: FLAGS,
  async run(invocation) {
    const { file } = locationOf(invocation)
    const { flags, cwd } = invocation
    const problem = problemIn(flags)
    if (problem !== undefined) throw new KubectlError(problem)
    const written = (await readPreferenceFile(file, cwd)) ?? NEW_PREFERENCE
    await savePreferenceFile(invocation, file, changed(written, flags, optionsOf(flags.option)))
  },
})

type Flags = SetInvocation['flags']

function problemIn(flags: Flags): string | undefined {
  const { section } = flags
  const isDefaults = section === DEFAULTS
  const rules: readonly (readonly [isWrong: boolean, text: string])[] = [
    [
      ![DEFAULTS, ALIASES, PLUGINS].includes(section),
      `--section must be "${DEFAULTS}", "${ALIASES}", or "${PLUGINS}", got: ${section}`,
    ],
    [section === ALIASES && flags.name === '', `--name is required when --section=${ALIASES}`],
    [isDefaults && flags.name !== '', `--name should not be specified when --section=${DEFAULTS}`],
    [
      isDefaults && flags.prependarg.length + flags.appendarg.length > 0,
      `--prependarg and --appendarg are only valid for --section=${ALIASES}`,
    ],
    [
      section !== PLUGINS && flags.command === '',
      `--command is required when --section=${ALIASES} or --section=${DEFAULTS}`,
    ],
  ]
  return rules.find(([isWrong]) => isWrong)?.[1] ?? (section === PLUGINS ? policyProblem(flags) : undefined)
}

function policyProblem({ policy, 'allowlist-entry': entries }: Flags): string | undefined {
  if (policy === '') return `--policy is required when --section=${PLUGINS}`
  const both = `--section=${PLUGINS} and --policy=Allowlist`
  if (policy === 'Allowlist') return entries.length > 0 ? undefined : `--allowlist-entry is required when ${both}`
  if (policy === 'AllowAll' || policy === 'DenyAll') {
    return entries.length === 0 ? undefined : `--allowlist-entry may only be used when ${both}`
  }
  return ` --policy must be  "AllowAll", "DenyAll", or "Allowlist", got: ${policy}`
}

/** Parses `flag=value`, with or without dashes. Throws KubectlError. */
function optionsOf(given: readonly string[]): JsonObject[] {
  return given.map((text) => {
    const at = text.indexOf('=')
    if (at < 0) throw new KubectlError(`invalid option format ${goQuote(text)}, expected flag=value`)
    return { name: text.slice(0, at).replace(/^-+/, ''), default: text.slice(at + 1) }
  })
}

function changed(written: PreferenceFile, flags: Flags, options: readonly JsonObject[]): PreferenceFile {
  if (flags.section === PLUGINS) return withPolicy(written, flags)
  const isAlias = flags.section === ALIASES
  const key = isAlias ? 'name' : 'command'
  const entries = (isAlias ? written.aliases : written.defaults) ?? []
  const at = entries.findIndex((entry) => entry[key] === flags[key])
  if (at >= 0 && !flags.overwrite) {
    const what = isAlias
      ? `alias ${goQuote(flags.name)} already exists`
      : `defaults for command ${goQuote(flags.command)} already exist`
    throw new KubectlError(`${what}, use --overwrite to replace`)
  }
  const entry = (isAlias ? aliasEntry : defaultsEntry)(entries[at], flags, options)
  const list = at < 0 ? [...entries, entry] : entries.with(at, entry)
  return isAlias ? { ...written, aliases: list } : { ...written, defaults: list }
}

/** Lists that are not given stay unchanged. */
function kept(old: JsonObject | undefined, field: string, given: readonly (JsonObject | string)[]): JsonObject {
  const value = given.length > 0 ? [...given] : old?.[field]
  return Array.isArray(value) && value.length > 0 ? { [field]: value } : {}
}

function defaultsEntry(old: JsonObject | undefined, { command }: Flags, options: readonly JsonObject[]): JsonObject {
  return { command, options: null, ...kept(old, 'options', options) }
}

function aliasEntry(old: JsonObject | undefined, flags: Flags, options: readonly JsonObject[]): JsonObject {
  return {
    name: flags.name,
    command: flags.command,
    ...kept(old, 'prependArgs', flags.prependarg),
    ...kept(old, 'appendArgs', flags.appendarg),
    ...kept(old, 'options', options),
  }
}

function withPolicy(written: PreferenceFile, flags: Flags): PreferenceFile {
  const credentialPluginPolicy = flags.policy
  if (credentialPluginPolicy !== 'Allowlist') return { ...written, credentialPluginPolicy }
  return { ...written, credentialPluginPolicy, credentialPluginAllowlist: allowlistOf(flags['allowlist-entry']) }
}

function allowlistOf(given: readonly string[]): JsonObject[] {
  const errors: Error[] = []
  const entries: JsonObject[] = []
  for (const pair of given.flatMap((text) => text.split(','))) {
    const at = pair.indexOf('=')
    const [field, value] = [pair.slice(0, at), pair.slice(at + 1)]
    const problem = at < 0 ? `improperly formatted allowlist entry: ${goQuote(pair)}` : entryProblem(field, value)
    if (problem === undefined) entries.push({ command: value })
    else errors.push(new KubectlError(problem))
  }
  const failed = failuresOf(errors)
  if (failed !== undefined) throw failed
  return entries
}

function entryProblem(field: string, value: string): string | undefined {
  if (field === 'name') return 'allowlist entry field "name" is deprecated, use "command" instead'
  if (field !== 'command') return `unrecognized allowlist entry field: ${goQuote(field)}`
  return value.trim() === '' ? `empty value in allowlist entry for field ${goQuote(field)}` : undefined
}
