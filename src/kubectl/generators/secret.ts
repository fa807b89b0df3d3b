/** kubectl create secret: creates generic, TLS and docker-registry secrets. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import { configMapKey } from '#meta/validation/names.ts'

import { type Command, defineGroup, row } from '../command.ts'
import { contentHash } from '../content-hash.ts'
import { KubectlError } from '../errors.ts'
import { goFileError } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'
import { beginning, defineGenerator } from './generator.ts'
import { entriesFrom } from './sources.ts'

const generic: Command = defineGenerator({
  name: 'generic',
  use: 'NAME [--type=string] [--from-file=[key=]source] [--from-literal=key1=value1] [--dry-run=server|client|none] [options]',
  long: 'Create a secret from files, directories or literal values.',
  failure: 'failed to create secret ',
  flags: {
    'from-file': flag(strings, [], 'File or directory of files, optionally with a [key=] prefix.'),
    'from-literal': flag(stringArray, [], 'Literal key and value: mykey=somevalue.'),
    'from-env-file': flag(strings, [], 'File with lines of the form key=value.'),
    type: flag(string, '', 'Type of the secret.'),
    'append-hash': flag(bool, false, 'Append a hash of the content to the name.'),
  },
  async make(name, { flags, cwd, env }) {
    return secretOf(name, flags.type, await entriesFrom({ flags, cwd, env }, 'secret'), flags['append-hash'])
  },
})

function secretOf(
  name: string,
  type: string,
  entries: readonly (readonly [string, Buffer])[],
  isHashed: boolean,
): AnyObject {
  const data: Record<string, string> = {}
  for (const [key, value] of entries) {
    const problems = configMapKey(key)
    if (problems.length > 0) {
      throw new KubectlError(`${goQuote(key)} is not valid key name for a Secret ${problems.join(';')}`)
    }
    if (Object.hasOwn(data, key)) {
      throw new KubectlError(`cannot add key ${key}, another key by that name already exists`)
    }
    data[key] = value.toString('base64')
  }
  const sorted = Object.fromEntries(Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1)))
  return {
    ...beginning('v1', 'Secret'),
    metadata: { name: isHashed ? `${name}-${contentHash({ data: sorted, kind: 'Secret', name, type })}` : name },
    ...(entries.length > 0 && { data: sorted }),
    ...(type !== '' && { type }),
  }
}

const tls: Command = defineGenerator({
  name: 'tls',
  use: 'NAME --cert=path/to/cert/file --key=path/to/key/file [--dry-run=server|client|none] [options]',
  long: 'Create a TLS secret from a certificate and a private key.',
  failure: 'failed to create secret ',
  flags: {
    cert: flag(string, '', 'File with the certificate in PEM format.'),
    key: flag(string, '', 'File with the private key in PEM format.'),
    'append-hash': flag(bool, false, 'Append a hash of the content to the name.'),
  },
  async make(name, { flags, cwd }) {
    if (flags.key === '' || flags.cert === '') throw new KubectlError('key and cert must be specified')
    const read = (file: string): Promise<Buffer> =>
      readFile(resolve(cwd, file)).catch((cause: Error) => {
        throw new KubectlError(`Cannot read file ${file}, ${goFileError(file, cause)}`, { cause })
      })
    const [certificate, key] = [await read(flags.cert), await read(flags.key)]
    const entries = [['tls.crt', certificate] as const, ['tls.key', key] as const]
    return secretOf(name, 'kubernetes.io/tls', entries, flags['append-hash'])
  },
})

const DOCKER_KEY = '.dockerconfigjson'

const dockerRegistry: Command = defineGenerator({
  name: 'docker-registry',
  use: 'NAME --docker-username=user --docker-password=password --docker-email=email [--docker-server=string] [--from-file=[key=]source] [--dry-run=server|client|none] [options]',
  long: 'Create a secret for an image registry.',
  failure: 'failed to create secret ',
  flags: {
    'docker-server': flag(string, 'https://index.docker.io/v1/', 'The registry.'),
    'docker-username': flag(string, '', 'User name for the registry.'),
    'docker-password': flag(string, '', 'The password.'),
    'docker-email': flag(string, '', 'Email address for the registry.'),
    'from-file': flag(strings, [], 'Client configuration file of a registry, stored as .dockerconfigjson.'),
    'append-hash': flag(bool, false, 'Append a hash of the content to the name.'),
  },
  async make(name, { flags, cwd, env }) {
    const { 'docker-username': username, 'docker-password': password, 'docker-email': email } = flags
    const { 'from-file': files, 'append-hash': isHashed, 'docker-server': server } = flags
    const type = 'kubernetes.io/dockerconfigjson'
    if (files.length > 0) {
      const sources = files.map((file) => (file.includes('=') ? file : `${DOCKER_KEY}=${file}`))
      const given = { 'from-file': sources, 'from-literal': [], 'from-env-file': [] }
      return secretOf(name, type, await entriesFrom({ flags: given, cwd, env }, 'secret'), isHashed)
    }
    if (username === '' || password === '' || server === '') {
      throw new KubectlError(
        'either --from-file or the combination of --docker-username, --docker-password and --docker-server is required',
      )
    }
    const auth = Buffer.from(`${username}:${password}`).toString('base64')
    const entry = { username, password, ...(email !== '' && { email }), auth }
    const config = JSON.stringify({ auths: { [server]: entry } })
    return secretOf(name, type, [[DOCKER_KEY, Buffer.from(config)]], isHashed)
  },
})

export const secret: Command = defineGroup({
  name: 'secret',
  use: '(docker-registry | generic | tls) [options]',
  long: 'Create a secret of a certain type.',
  commands: [
    row('docker-registry', 'Create a secret for an image registry', () => Promise.resolve(dockerRegistry)),
    row('generic', 'Create a secret from files, directories or literal values', () => Promise.resolve(generic)),
    row('tls', 'Create a TLS secret', () => Promise.resolve(tls)),
  ],
})
