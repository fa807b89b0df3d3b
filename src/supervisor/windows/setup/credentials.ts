/**
 * Creates the credentials of a Windows worker: each component has separate ones, with minimal rights. Only the set-up
 * uses the administrator's kubeconfig; no service or variable refers to it.
 */
import type { Step } from '../../steps.ts'
import type { Component, SetupContext } from './context.ts'
import { kubeconfigDocument } from './documents.ts'
import type { SetupPaths } from './settings.ts'

type SetupStep = Step<SetupContext>

/** Windows groups by SID, because their names are translated: Administrators and SYSTEM. */
const OWNERS = ['*S-1-5-32-544:(OI)(CI)F', '*S-1-5-18:(OI)(CI)F']

/** The content of the marker file; another content makes the step run again. */
const ACCESS = 'administrators and system'

const folderAccess: SetupStep = {
  name: 'access to the base folder',
  isDone: async ({ host, paths }) => (await host.files.read(paths.accessMark)) === ACCESS,
  async take({ host, settings, paths }) {
    await host.processes.output('icacls.exe', [settings.baseDir, '/inheritance:r', '/grant:r', ...OWNERS])
    await host.files.write(paths.accessMark, ACCESS)
  },
  async undo({ host, settings, paths }) {
    if (!(await host.files.exists(paths.accessMark))) return
    await host.processes.output('icacls.exe', [settings.baseDir, '/reset'])
    await host.files.remove(paths.accessMark)
  },
}

/** The authority of clients that the kubelet accepts. */
const clientAuthority: SetupStep = {
  name: 'authority of clients',
  isDone: async ({ host, paths, cluster }) =>
    (await host.files.read(paths.clientAuthority)) === (await cluster.clientAuthority()),
  take: async ({ host, paths, cluster }) => host.files.write(paths.clientAuthority, await cluster.clientAuthority()),
  undo: ({ host, paths }) => host.files.remove(paths.clientAuthority),
}

/** Valid for a day and only for requesting a certificate; the kubelet then writes its own kubeconfig. */
const bootstrap: SetupStep = {
  name: 'bootstrap kubeconfig of kubelet',
  isDone: ({ host, paths }) => host.files.exists(paths.kubeletKubeconfig),
  async take({ host, paths, cluster }) {
    // A running kubelet has read a token that may have expired.
    if ((await host.services.state('Kubelet')) === 'running') await host.services.stop('Kubelet')
    const text = kubeconfigDocument(await cluster.endpoint(), await cluster.joinToken())
    await host.files.write(paths.bootstrapKubeconfig, text)
  },
  async undo({ host, paths }) {
    await host.files.remove(paths.bootstrapKubeconfig)
    await host.files.remove(paths.kubeletKubeconfig)
    await host.files.empty(paths.pki)
    await host.files.remove(paths.pki)
  },
}

/** The token of a ServiceAccount that only this machine uses, so that `reset` can revoke it. */
function component(name: Component, path: (paths: SetupPaths) => string): SetupStep {
  return {
    name: `kubeconfig of ${name}`,
    isDone: ({ host, paths }) => host.files.exists(path(paths)),
    async take({ host, paths, cluster }) {
      const token = await cluster.componentToken(name, host.machineName)
      await host.files.write(path(paths), kubeconfigDocument(await cluster.endpoint(), token))
    },
    async undo({ host, paths, cluster }) {
      await cluster.revoke(name, host.machineName)
      await host.files.remove(path(paths))
    },
  }
}

export const CREDENTIAL_STEPS: readonly SetupStep[] = [
  folderAccess,
  clientAuthority,
  bootstrap,
  component('kube-proxy', ({ kubeProxyKubeconfig }) => kubeProxyKubeconfig),
  component('flannel', ({ flannelKubeconfig }) => flannelKubeconfig),
]
