/** Adds advice to error messages about failures on machines. Pure. */

const HINTS: readonly (readonly [pattern: RegExp, hint: string])[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed/i,
    'A machine shows another host key than at first sight. If it was replaced or installed anew, forget its key ' +
      '(POST /v3/clusters/<cluster>/host-keys) and retry; otherwise an attacker may be between the server and the machine.',
  ],
  [
    /Permission denied \((?:publickey|[^)]*publickey)/i,
    'A machine does not admit the key of the cluster: add status.build.sshPublicKey of the Cluster to authorized_keys ' +
      'of the user in the cluster file.',
  ],
  [/sudo: a password is required|sudo: .*password/i, 'The user in the cluster file needs sudo without a password.'],
  [
    /Connection (?:timed out|refused)|No route to host|Network is unreachable|Could not resolve hostname/i,
    'A machine cannot be reached by SSH from the server: check its address, its firewall and whether it runs.',
  ],
]

/** The message of an error, and hints for known causes. */
export function explainFailure(message: string): string {
  const hints = HINTS.filter(([pattern]) => pattern.test(message)).map(([, hint]) => hint)
  // The warning of ssh is a page long.
  const short = message.replaceAll(/@{5,}[\s\S]*?(?=Host key verification failed)/g, '')
  return [short, ...hints].join('\n')
}
