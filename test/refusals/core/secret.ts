import { Secrets } from '#apis/core/v1.ts'

import type { KindCases } from '../case.ts'

const base64 = (text: string): string => Buffer.from(text).toString('base64')

export const secret: KindCases = {
  kind: Secrets,
  valid: { metadata: { name: 'keys' }, data: { password: base64('open') } },
  refused: [
    { why: 'the name has an underscore', set: { '/metadata/name': 'my_keys' } },
    { why: 'a key has a slash', set: { '/data/a~1b': base64('x') } },
    { why: 'a key begins with dots', set: { '/data/..a': base64('x') } },
    { why: 'a key is too long', set: { [`/data/${'a'.repeat(254)}`]: base64('x') } },
    { why: 'data is not valid base64', set: { '/data/password': 'open sesame' } },
    { why: 'data is a number', set: { '/data/password': 7 } },
    { why: 'text data is a number', set: { '/stringData': { a: 7 } } },
    { why: 'more than a megabyte', set: { '/data/password': base64('x'.repeat(1_048_577)) } },
    { why: 'a token without a subject', set: { '/type': 'kubernetes.io/service-account-token' } },
    { why: 'a docker configuration has no data', set: { '/type': 'kubernetes.io/dockerconfigjson' } },
    {
      why: 'a docker configuration is not valid JSON',
      set: { '/type': 'kubernetes.io/dockerconfigjson', '/data/.dockerconfigjson': base64('x') },
    },
    { why: 'an old docker configuration has no data', set: { '/type': 'kubernetes.io/dockercfg' } },
    {
      why: 'an old docker configuration is not valid JSON',
      set: { '/type': 'kubernetes.io/dockercfg', '/data/.dockercfg': base64('{') },
    },
    { why: 'basic authentication has neither', set: { '/type': 'kubernetes.io/basic-auth', '/data': {} } },
    { why: 'ssh has no key', set: { '/type': 'kubernetes.io/ssh-auth' } },
    { why: 'tls has neither', set: { '/type': 'kubernetes.io/tls' } },
    { why: 'tls has no key', set: { '/type': 'kubernetes.io/tls', '/data/tls.crt': base64('x') } },
    { why: 'the type changes', on: 'update', set: { '/type': 'example.com/other' } },
    {
      why: 'immutable data changes',
      on: 'update',
      stored: { '/immutable': true },
      set: { '/data/password': base64('shut') },
    },
    {
      why: 'immutable becomes mutable',
      on: 'update',
      stored: { '/immutable': true },
      set: { '/immutable': undefined },
    },
  ],
}
