/** kubectl create token: requests a token for a service account. */
import { flag } from '#lib/flags/flags.ts'
import { duration, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { printerOf, printFlags } from '../printing.ts'
import { nameIn } from './generator.ts'

const BOUND_KINDS = ['Node', 'Pod', 'Secret']

interface TokenFlags {
  readonly audience: readonly string[]
  /** Milliseconds. */
  readonly duration: number
  readonly 'bound-object-kind': string
  readonly 'bound-object-name': string
  readonly 'bound-object-uid': string
}

export const token: Command = defineCommand({
  name: 'token',
  use: 'SERVICE_ACCOUNT_NAME [options]',
  long: 'Request a token for a service account.',
  flags: {
    ...printFlags(),
    audience: flag(stringArray, [], 'Audience of the token, the API server by default; may be repeated.'),
    duration: flag(duration, 0, 'Requested lifetime of the token. The server chooses a default and may shorten it.'),
    'bound-object-kind': flag(string, '', 'Kind of the object that the token is bound to: Node, Pod or Secret.'),
    'bound-object-name': flag(string, '', 'Name of the bound object.'),
    'bound-object-uid': flag(string, '', 'UID of the bound object. The default is the UID of the existing object.'),
  },
  completes: { names: 'serviceaccount' },
  async run(invocation) {
    const { flags, session, stdout } = invocation
    const name = nameIn(invocation)
    const { namespace } = await session.namespace()
    const printer =
      flags.output === '' ? undefined : await printerOf(invocation, { operation: 'created', keepOrder: true })
    check(flags)
    const answer = await requestToken(invocation, { name, namespace, spec: specOf(flags) })
    if (printer !== undefined) {
      printer.print(answer, stdout)
      return
    }
    const text = (answer['status'] as { token?: string } | undefined)?.token ?? ''
    if (text === '') throw new KubectlError('failed to create token: no token in server response')
    stdout.write('isTTY' in stdout && stdout.isTTY === true ? `${text}\n` : text)
  },
})

interface TokenRequest {
  readonly name: string
  readonly namespace: string
  readonly spec: object
}

async function requestToken(
  { session }: Pick<Invocation, 'session'>,
  { name, namespace, spec }: TokenRequest,
): Promise<JsonObject> {
  const kind = await (await session.mapper()).ofObject('v1', 'ServiceAccount')
  const request = { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata: {}, spec }
  const rest = await session.rest()
  const answer = await rest.create({ kind, namespace, name, subresource: 'token' }, request).catch((cause: unknown) => {
    throw new KubectlError(`failed to create token: ${asError(cause).message}`, { cause })
  })
  return answer as unknown as JsonObject
}

function specOf({ audience, duration: lastsMs, ...bound }: TokenFlags): object {
  const { 'bound-object-kind': kind, 'bound-object-name': name, 'bound-object-uid': uid } = bound
  return {
    audiences: audience.length === 0 ? null : audience,
    ...(lastsMs > 0 && { expirationSeconds: lastsMs / 1000 }),
    ...(kind !== '' && { boundObjectRef: { kind, apiVersion: 'v1', name, ...(uid !== '' && { uid }) } }),
  }
}

/** Throws KubectlError. */
function check({ audience, duration: lastsMs, ...bound }: TokenFlags): void {
  const { 'bound-object-kind': kind, 'bound-object-name': name, 'bound-object-uid': uid } = bound
  const problems: [isSo: boolean, text: string][] = [
    [lastsMs < 0, '--duration must be greater than or equal to 0'],
    [lastsMs % 1000 !== 0, '--duration cannot be expressed in units less than seconds'],
    [audience.includes(''), '--audience must not be an empty string'],
    [kind === '' && name !== '', '--bound-object-name can only be set if --bound-object-kind is provided'],
    [kind === '' && uid !== '', '--bound-object-uid can only be set if --bound-object-kind is provided'],
    [kind !== '' && !BOUND_KINDS.includes(kind), `supported --bound-object-kind values are ${BOUND_KINDS.join(', ')}`],
    [kind !== '' && name === '', '--bound-object-name is required if --bound-object-kind is provided'],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}
