/** The global flags of kubectl, with upstream's names and defaults. */
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

/** `home` contains the default cache directory. */
export function globalFlags(env: Readonly<Record<string, string | undefined>>): GlobalFlags {
  const cache = env['KUBECACHEDIR'] || `${env['HOME'] ?? ''}/.kube/cache`
  return {
    as: flag(string, '', 'User name or service account to impersonate.'),
    'as-group': flag(stringArray, [], 'Group to impersonate; may be repeated.'),
    'as-uid': flag(string, '', 'UID to impersonate.'),
    'as-user-extra': flag(stringArray, [], 'Extra field to impersonate, as KEY=VALUE; may be repeated.'),
    'cache-dir': flag(string, cache, 'Directory for cached discovery data.'),
    'certificate-authority': flag(string, '', 'File with the certificate of the trusted certificate authority.'),
    'client-certificate': flag(string, '', 'File with the client certificate for TLS.'),
    'client-key': flag(string, '', 'File with the client key for TLS.'),
    cluster: flag(string, '', 'Name of the cluster in the kubeconfig to use.'),
    context: flag(string, '', 'Name of the context in the kubeconfig to use.'),
    'disable-compression': flag(bool, false, 'Accepted without effect: kubectl never requests compressed responses.'),
    'insecure-skip-tls-verify': flag(
      bool,
      false,
      "Skip verification of the server's certificate. This makes HTTPS insecure.",
    ),
    kubeconfig: flag(string, '', 'Path of the kubeconfig file.'),
    kuberc: flag(
      string,
      '',
      'Path of the kuberc file with preferences. KUBECTL_KUBERC=false or KUBERC=off disables it.',
    ),
    'log-flush-frequency': flag(duration, 5000, 'Accepted without effect: log lines are written immediately.'),
    'match-server-version': flag(bool, false, 'Fail if the server version differs from the client version.'),
    namespace: flag(string, '', 'Namespace of the request.', { shorthand: 'n' }),
    password: flag(string, '', 'Password for basic authentication.'),
    profile: flag(oneOf(...PROFILES), 'none', `Name of the profile to take. One of (${PROFILES.join('|')}).`),
    'profile-output': flag(string, 'profile.pprof', 'File to write the profile to.'),
    'request-timeout': flag(
      string,
      '0',
      'Time limit of a single request, with a unit (1s, 2m, 3h). Zero means no limit.',
    ),
    server: flag(string, '', 'Address and port of the API server.', { shorthand: 's' }),
    'tls-server-name': flag(string, '', 'Server name to verify the certificate against, instead of the host name.'),
    token: flag(string, '', 'Bearer token for the API server.'),
    user: flag(string, '', 'Name of the user in the kubeconfig to use.'),
    username: flag(string, '', 'User name for basic authentication.'),
    v: flag(int, 0, 'Log verbosity, a number.', { shorthand: 'v' }),
    vmodule: flag({ ...string, type: 'moduleSpec' }, '', 'Accepted without effect.'),
    'warnings-as-errors': flag(bool, false, 'Treat warnings from the server as errors and exit with a non-zero code.'),
  }
}

/**
 * Finds a given flag that is not supported. Such flags are rejected by name; flags that only tune logs and connections
 * are accepted.
 */
export function unbuiltFlag(values: Readonly<Record<string, unknown>>): string | undefined {
  const profiling: Readonly<Record<string, boolean>> = {
    profile: values['profile'] !== 'none',
  }
  return Object.keys(profiling).find((name) => profiling[name])
}
