/** Props of the views that the browser loads when they are opened. */
export interface ClusterViewProps {
  readonly cluster: string
}

export interface ServerViewProps {
  /** The second part of the address: the name of one user, for example. Empty: all. */
  readonly item: string
}
