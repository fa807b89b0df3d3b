/** The flags of every command, with upstream's names and defaults. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, duration, int, oneOf, string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'

export interface GlobalFlags {
  readonly as: Flag<string>
  readonly 'as-group': Flag<readonly string[]>
  readonly 'as-uid': Flag<string>
  readonly 'as-user-extra': Flag<readonly string[]>
  readonly 'cache-dir': Flag<string>
  readonly 'certificate-authority': Flag<string>
  readonly 'client-certificate': Flag<string>
  readonly 'client-key': Flag<string>
  readonly cluster: Flag<string>
  readonly context: Flag<string>
  readonly 'disable-compression': Flag<boolean>
  readonly 'insecure-skip-tls-verify': Flag<boolean>
  readonly kubeconfig: Flag<string>
  readonly kuberc: Flag<string>
  readonly 'log-flush-frequency': Flag<number>
  readonly 'match-server-version': Flag<boolean>
  readonly namespace: Flag<string>
  readonly password: Flag<string>
  readonly profile: Flag<string>
  readonly 'profile-output': Flag<string>
  readonly 'request-timeout': Flag<string>
  readonly server: Flag<string>
  readonly 'tls-server-name': Flag<string>
  readonly token: Flag<string>
  readonly user: Flag<string>
  readonly username: Flag<string>
  readonly v: Flag<number>
  readonly vmodule: Flag<string>
  readonly 'warnings-as-errors': Flag<boolean>
}

const PROFILES = ['none', 'cpu', 'heap', 'goroutine', 'threadcreate', 'block', 'mutex', 'trace'] as const

/** `home` is where the cache is when nobody says otherwise. */
export function globalFlags(env: Readonly<Record<string, string | undefined>>): GlobalFlags {
  const cache = env['KUBECACHEDIR'] || `${env['HOME'] ?? ''}/.kube/cache`
  return {
    as: flag(string, '', 'Act as this user, or as this service account of a namespace.'),
    'as-group': flag(stringArray, [], 'Act as a member of this group. Can be given several times.'),
    'as-uid': flag(string, '', 'Act as the user with this UID.'),
    'as-user-extra': flag(stringArray, [], 'Act as a user with this extra, KEY=VALUE. Can be given several times.'),
    'cache-dir': flag(string, cache, 'Directory for what is remembered of servers.'),
    'certificate-authority': flag(string, '', 'File with the certificate of the authority to trust.'),
    'client-certificate': flag(string, '', 'File with the client certificate for TLS.'),
    'client-key': flag(string, '', 'File with the client key for TLS.'),
    cluster: flag(string, '', 'Name of the cluster in the kubeconfig to use.'),
    context: flag(string, '', 'Name of the context in the kubeconfig to use.'),
    'disable-compression': flag(bool, false, 'Taken without effect: answers are never asked for compressed.'),
    'insecure-skip-tls-verify': flag(bool, false, "Do not check the server's certificate. HTTPS is insecure then."),
    kubeconfig: flag(string, '', 'The kubeconfig file to use.'),
    kuberc: flag(string, '', 'The kuberc file with preferences. KUBECTL_KUBERC=false or KUBERC=off turns it off.'),
    'log-flush-frequency': flag(duration, 5000, 'Taken without effect: lines are written at once.'),
    'match-server-version': flag(bool, false, 'Refuse to talk to a server of another version.'),
    namespace: flag(string, '', 'The namespace to work in.', { shorthand: 'n' }),
    password: flag(string, '', 'Password for basic authentication.'),
    profile: flag(oneOf(...PROFILES), 'none', `Name of the profile to take. One of (${PROFILES.join('|')}).`),
    'profile-output': flag(string, 'profile.pprof', 'File to write the profile to.'),
    'request-timeout': flag(
      string,
      '0',
      'How long one request may take, with a unit (1s, 2m, 3h). Zero: as long as it takes.',
    ),
    server: flag(string, '', 'Address and port of the API server.', { shorthand: 's' }),
    'tls-server-name': flag(string, '', "Name to expect in the server's certificate instead of the host's."),
    token: flag(string, '', 'Bearer token for the API server.'),
    user: flag(string, '', 'Name of the user in the kubeconfig to use.'),
    username: flag(string, '', 'Name for basic authentication.'),
    v: flag(int, 0, 'How much is logged: a number.', { shorthand: 'v' }),
    vmodule: flag({ ...string, type: 'moduleSpec' }, '', 'Taken without effect.'),
    'warnings-as-errors': flag(bool, false, "Take the server's warnings for errors and fail with them."),
  }
}

/** A flag that asks for what is not there: it is refused by name, never ignored. Those that only tune logs and connections change nothing here. */
export function unbuiltFlag(values: Readonly<Record<string, unknown>>): string | undefined {
  const asked: Readonly<Record<string, boolean>> = {
    profile: values['profile'] !== 'none',
  }
  return Object.keys(asked).find((name) => asked[name])
}
