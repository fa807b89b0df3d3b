/**
 * Where the server is and who we are, as every program finds out: from `--kubeconfig` and `--master`, from the files that a
 * pod has, or from the files of the user.
 */
import { join, resolve } from 'node:path'

import { ConfigError } from '#model/kubeconfig/config-error.ts'
import { problemIn, wasMissing } from '#model/kubeconfig/problems.ts'
import {
  chooseContext,
  type ClientConfig,
  type Kubeconfig,
  type Overrides,
  type ReadText,
  readKubeconfigs,
} from '#model/kubeconfig/reading.ts'

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readFile: ReadText
  /** Told of what upstream only warns of. */
  readonly warn?: (text: string) => void
}

const SECRETS = '/var/run/secrets/kubernetes.io/serviceaccount'

/** For programs: `--kubeconfig` and `--master`, and the files of a pod without either. Throws ConfigError. */
export async function programConfig(
  { kubeconfig, master }: { readonly kubeconfig: string; readonly master: string },
  sources: ConfigSources,
): Promise<ClientConfig> {
  if (kubeconfig === '' && master === '') {
    sources.warn?.('Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work.')
    try {
      return await inClusterConfig(sources)
    } catch (error) {
      sources.warn?.(`error creating inClusterConfig, falling back to default config: ${(error as Error).message}`)
    }
  }
  const overrides = master === '' ? {} : { server: master }
  return chooseContext(await readExplicit(kubeconfig, sources), overrides, problemIn(sources.readFile))
}

/** For people: the file given, those of KUBECONFIG, or `~/.kube/config`. Throws ConfigError. */
export async function userConfig(
  explicit: string,
  overrides: Overrides,
  sources: ConfigSources,
): Promise<ClientConfig> {
  const { env, cwd, readFile } = sources
  const listed = (env['KUBECONFIG'] ?? '').split(':').filter(Boolean)
  const files = listed.length > 0 ? [...new Set(listed)] : [join(env['HOME'] ?? '', '.kube', 'config')]
  const config = explicit === '' ? await readKubeconfigs(files, readFile, cwd) : await readExplicit(explicit, sources)
  return chooseContext(config, overrides, problemIn(sources.readFile))
}

/** What a pod is given: read again as long as it runs, for tokens are renewed. Throws ConfigError. */
export async function inClusterConfig({ env, readFile, warn }: ConfigSources): Promise<ClientConfig> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '' } = env
  if (host === '' || port === '') {
    throw new ConfigError(
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    )
  }
  const [token, ca] = [join(SECRETS, 'token'), join(SECRETS, 'ca.crt')]
  const problem = await problemIn(readFile)(token)
  if (problem !== undefined) throw new ConfigError(problem)
  const untrusted = await problemIn(readFile)(ca)
  if (untrusted !== undefined) warn?.(`Expected to load root CA config from ${ca}, but got err: ${untrusted}`)
  return {
    cluster: {
      server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
      ...(untrusted === undefined && { 'certificate-authority': ca }),
    },
    user: { tokenFile: token },
    namespace: await readFile(join(SECRETS, 'namespace')).then(
      (text) => text.trim(),
      () => '',
    ),
  }
}

/** A file that was named must be there. */
async function readExplicit(file: string, { cwd, readFile }: ConfigSources): Promise<Kubeconfig> {
  if (file !== '') {
    const isMissing = await readFile(file).then(() => false, wasMissing)
    if (isMissing) throw new ConfigError(`stat ${file}: no such file or directory`)
  }
  return readKubeconfigs([file], readFile, resolve(cwd))
}
