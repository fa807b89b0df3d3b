/**
 * Client configuration of every program: from `--kubeconfig` and `--master`, from the files of a pod, or from the
 * user's kubeconfig.
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

import { kubeconfigFiles } from './kubeconfig-files.ts'

export interface ConfigSources {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly readFile: ReadText
  /** Receives upstream's warnings. */
  readonly warn?: (text: string) => void
}

const SECRETS = '/var/run/secrets/kubernetes.io/serviceaccount'

/** For components: `--kubeconfig` and `--master`, or the in-cluster files without either. Throws ConfigError. */
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

/** For users: the given file, those of KUBECONFIG, or `~/.kube/config`. Throws ConfigError. */
export async function userConfig(
  explicit: string,
  overrides: Overrides,
  sources: ConfigSources,
): Promise<ClientConfig> {
  const { env, cwd, readFile } = sources
  const config =
    explicit === ''
      ? await readKubeconfigs(kubeconfigFiles('', env), readFile, cwd)
      : await readExplicit(explicit, sources)
  return chooseContext(config, overrides, problemIn(sources.readFile))
}

/**
 * The service account of this pod. The token file is read again over time, because the kubelet renews it. Throws
 * ConfigError.
 */
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

/** Fails if the file does not exist. */
async function readExplicit(file: string, { cwd, readFile }: ConfigSources): Promise<Kubeconfig> {
  if (file !== '') {
    const isMissing = await readFile(file).then(() => false, wasMissing)
    if (isMissing) throw new ConfigError(`stat ${file}: no such file or directory`)
  }
  return readKubeconfigs([file], readFile, resolve(cwd))
}
