# shellcheck shell=sh
# nginx on the loopback interface, sourced by tests that serve files.

PATH=$PATH:/usr/sbin # where Debian keeps it, not on every PATH

# DIR ROOT PORT: serves ROOT. In DIR are `pid`, `errors`, and `tokens`, the Authorization of each request. Ends as nginx
# does, non-zero when the port is taken.
nginx_serves() {
  # Workers of a root nginx run as another user, who may not enter a throwaway home.
  user=''
  [ "$(id -u)" != 0 ] || user='user root;'
  mkdir -p "$1/tmp"
  cat >"$1/conf" <<EOT
$user
pid $1/pid;
error_log $1/errors;
events {}
http {
  log_format token '\$http_authorization';
  access_log $1/tokens token;
  client_body_temp_path $1/tmp; proxy_temp_path $1/tmp; fastcgi_temp_path $1/tmp;
  uwsgi_temp_path $1/tmp; scgi_temp_path $1/tmp;
  server { listen 127.0.0.1:$3; root $2; }
}
EOT
  nginx -p "$1" -c "$1/conf" 2>>"$1/errors"
}
