/** kubectl explain: describes the fields of a kind from the server's OpenAPI document. */
import type { ServedKind } from '#client/discovery.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { parseApiVersion } from '#meta/kind.ts'

import { type Command, defineCommand } from '../command.ts'
import { ExitError, KubectlError } from '../errors.ts'
import type { OpenApiV2 } from '../explain/openapi-v2.ts'
import { explainTo, type OpenApiDocument } from '../explain/schema-text.ts'
import { AT_FLAG } from '../past/moment-flags.ts'
import type { Mapper } from '../session/mapper.ts'

export const explain: Command = defineCommand({
  name: 'explain',
  use: 'TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [-o|--output=plaintext|plaintext-openapiv2] [options]',
  long:
    'Describe the fields of a resource, from the documentation on the server. A path identifies a field: ' +
    '<type>.<fieldName>[.<fieldName>].\n\nUse "kubectl api-resources" for a complete list of supported resources.',
  examples: `# Explain the resource and its fields
kubectl explain pods

# Show the tree of all fields
kubectl explain pods --recursive

# Explain one field
kubectl explain pods.spec.containers

# Explain deployments of an API version
kubectl explain deployments --api-version=apps/v1

# Explain in the older format
kubectl explain deployments --output=plaintext-openapiv2`,
  flags: {
    ...AT_FLAG,
    'api-version': flag(string, '', 'API version (API group/version) of the resource to explain.'),
    output: flag(string, 'plaintext', 'Format: plaintext, or plaintext-openapiv2 for the older one.', {
      shorthand: 'o',
    }),
    recursive: flag(bool, false, 'Show the names of all nested fields, without descriptions.', {
      shorthand: 'R',
    }),
  },
  async run({ args, flags, session, stdout }) {
    const [argument, ...others] = args
    if (argument === undefined) {
      throw new KubectlError(
        'You must specify the type of resource to explain. Use "kubectl api-resources" for a complete list of supported resources.\n',
      )
    }
    if (others.length > 0) throw new KubectlError('We accept only this format: explain RESOURCE\n')
    const { kind, path } = await resolveArgument(await session.mapper(), argument, flags['api-version'] === '')
    const { group, version } = flags['api-version'] === '' ? kind : parseApiVersion(flags['api-version'])
    const rest = await session.rest()
    if (flags.output === 'plaintext-openapiv2') {
      const { explainV2 } = await import('../explain/openapi-v2.ts')
      const document = await rest.json<OpenApiV2>('/openapi/v2', 'application/json')
      const explained = { group, version, kind: kind.kind }
      stdout.write(explainV2({ document, kind: explained, path, recursive: flags.recursive }))
      return
    }
    if (flags.output !== 'plaintext') throw new KubectlError(`unrecognized format: ${flags.output}`)
    const root = group === '' ? `api/${version}` : `apis/${group}/${version}`
    const { paths } = await rest.json<OpenApiIndex>('/openapi/v3')
    const entry = paths[root]
    if (entry === undefined) {
      throw new KubectlError(`couldn't find resource for "${group}/${version}, Resource=${kind.plural}"`)
    }
    const document = await rest.json<OpenApiDocument>(entry.serverRelativeURL)
    const resource = { group, version, plural: kind.plural }
    explainTo((text) => stdout.write(text), { document, resource, path, recursive: flags.recursive })
  },
})

interface OpenApiIndex {
  readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>>
}

interface ExplainedField {
  readonly kind: ServedKind
  readonly path: readonly string[]
}

/** Resolves the kind, which may include its group, and the field names after it. */
async function resolveArgument(mapper: Mapper, argument: string, mayNameGroup: boolean): Promise<ExplainedField> {
  const [type = '', ...fields] = argument.split('.').filter((part) => part !== '')
  const kind = await mapper.named(type).catch((error: unknown) => {
    // Upstream has no prefix for this error.
    throw error instanceof KubectlError ? new ExitError(1, error.message) : error
  })
  if (!mayNameGroup) return { kind, path: fields }
  const named = (await mapper.kinds()).filter(({ plural, isPreferred }) => plural === kind.plural && isPreferred)
  const withGroup = named.find(({ plural, group }) => {
    const whole = group === '' ? plural : `${plural}.${group}`
    return group !== '' && (argument === whole || argument.startsWith(`${whole}.`))
  })
  if (withGroup === undefined) return { kind, path: fields }
  const rest = argument.slice(`${withGroup.plural}.${withGroup.group}`.length)
  return { kind: withGroup, path: rest.split('.').filter((part) => part !== '') }
}
